import type { Profile, Stall } from '../types';

export interface Row {
  name: string;
  seconds: number;
  low: number | null;
  high: number | null;
}

/** Compute is what stays of the step when the stalls are taken away; a stall below zero is none. */
export function stallRows(stalls: NonNullable<Profile['stalls']>): Row[] {
  const found: [string, Stall | null | undefined][] = [
    ['interconnect', stalls.devices > 1 ? stalls.interconnect : null],
    ['prep', stalls.prep],
    ['fetch', stalls.fetch],
  ];
  const rows = found.flatMap(([name, stall]): Row[] =>
    stall ? [{ name, seconds: stall.seconds, low: stall.seconds_low, high: stall.seconds_high }] : [],
  );
  const stalled = rows.reduce((sum, row) => sum + row.seconds, 0);
  return [{ name: 'compute', seconds: Math.max(0, stalls.step_s - stalled), low: null, high: null }, ...rows];
}
