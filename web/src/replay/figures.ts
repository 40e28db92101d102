import { valueAt } from '../series';
import type { Num, Policy } from '../types';

export function usdPerMillion(policy: Policy): Num {
  return policy.cost_usd !== null && policy.samples !== null && policy.samples > 0
    ? (policy.cost_usd / policy.samples) * 1e6
    : null;
}

/** Samples at a time; after the policy's end what it had then. */
export function samplesAt(policy: Policy, t: Num): Num {
  const table = policy.progress;
  if (t === null || !table || table.t_s.length === 0) return policy.samples;
  const last = table.t_s[table.t_s.length - 1]!;
  return t >= last ? policy.samples : valueAt({ t: table.t_s, y: table.samples, between: 'line' }, t);
}
