import type { PlanWish } from '../api';
import { fromStep, rounded, toStep, type LogScale } from '../scale';
import type { Choices, Plan } from '../types';

export type ProfileChoice = Choices['profiles'][number];

export type Target =
  { kind: 'loss'; scale: { from: number; to: number; steps: number } } | { kind: 'epochs' | 'steps'; scale: LogScale };

/** What can be aimed at with a profile: a loss where it has a curve, else epochs, else steps. */
export function targetOf(profile: ProfileChoice): Target {
  if (profile.losses) return { kind: 'loss', scale: { ...profile.losses, steps: 200 } };
  if (profile.epochs) return { kind: 'epochs', scale: { from: 1, to: 300, steps: 200 } };
  return { kind: 'steps', scale: { from: 100, to: 1e6, steps: 200 } };
}

export function targetValue(target: Target, step: number): number {
  const { from, to, steps } = target.scale;
  if (target.kind === 'loss') return Number((from + ((to - from) * step) / steps).toPrecision(3));
  return Math.max(1, Math.round(rounded(fromStep(target.scale, step), target.kind === 'epochs' ? 3 : 2)));
}

/** Where the slider starts: a loss that is neither trivial nor at the floor, a usual number of epochs or steps. */
export function firstStep(target: Target): number {
  if (target.kind === 'loss') return Math.round(target.scale.steps * 0.3);
  return toStep(target.scale, target.kind === 'epochs' ? 10 : 10000);
}

/** Ranges that hold the whole frontier of a plan made without limits, with room on both sides. */
export function limits(plan: Plan | null): { deadline: LogScale; budget: LogScale } {
  const options = [...(plan?.frontier ?? []), ...(plan?.feasible ? [plan] : [])];
  const times = options.flatMap((one) => one.time_s ?? []);
  const costs = options.flatMap((one) => one.cost_usd ?? []);
  return {
    deadline:
      times.length > 0
        ? { from: Math.min(...times) / 4, to: Math.max(...times) * 4, steps: 400 }
        : { from: 60, to: 14 * 86400, steps: 400 },
    budget:
      costs.length > 0
        ? { from: Math.min(...costs) / 4, to: Math.max(...costs) * 4, steps: 400 }
        : { from: 0.01, to: 10000, steps: 400 },
  };
}

export interface Settings {
  profile: ProfileChoice;
  catalog: string;
  target: number;
  /** null: not asked for. */
  deadline: number | null;
  budget: number | null;
  markets: string[];
}

export function wishOf(settings: Settings): PlanWish {
  const wish: PlanWish = { profile: settings.profile.name, catalog: settings.catalog, markets: settings.markets };
  wish[targetOf(settings.profile).kind] = settings.target;
  if (settings.deadline !== null) wish.deadline_s = settings.deadline;
  if (settings.budget !== null) wish.budget_usd = settings.budget;
  return wish;
}
