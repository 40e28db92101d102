import type { View } from './types';

/** A slider of whole steps over values whose ratio matters, such as deadlines. */
export interface LogScale {
  from: number;
  to: number;
  steps: number;
}

export function fromStep(scale: LogScale, step: number): number {
  return scale.from * Math.pow(scale.to / scale.from, step / scale.steps);
}

export function toStep(scale: LogScale, value: number): number {
  const at = (scale.steps * Math.log(value / scale.from)) / Math.log(scale.to / scale.from);
  return Math.min(scale.steps, Math.max(0, Math.round(at)));
}

/** A value a person would have said: two significant digits, or three where `digits` says so. */
export function rounded(value: number, digits = 2): number {
  if (value === 0) return 0;
  const unit = Math.pow(10, Math.floor(Math.log10(Math.abs(value))) - digits + 1);
  return Number((Math.round(value / unit) * unit).toPrecision(digits));
}

/** About `count` round values in [from, to], for an axis. */
export function ticks(from: number, to: number, count: number): number[] {
  if (!(to > from)) return [from];
  const raw = (to - from) / Math.max(1, count);
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= raw) ?? 10);
  const list: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i)
    list.push(Number((i * step).toPrecision(12)));
  return list;
}

/** Steps between ticks of a time axis, in seconds: those of clocks and calendars. */
export const timeSteps = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 2592000, 8640000, 31536000,
];

/** About `count` ticks of a time axis. */
export function timeTicks(from: number, to: number, count: number): number[] {
  const step = timeSteps.find((s) => s * count >= to - from) ?? timeSteps[timeSteps.length - 1]!;
  const list: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i)
    list.push(Number((i * step).toPrecision(12)));
  return list;
}

/** A little room behind a line, so that it can be seen. */
export function beyond(deadline: number): number {
  return 1.02 * deadline;
}

/**
 * Where the time axis of a run ends: now and what is left, the prediction, and the deadline unless it is so far away that
 * the run itself could not be seen any more.
 */
export function runEnd(view: View): number {
  const now = view.time_s ?? 0;
  const over = view.end !== null || view.left_s === null;
  // A run that just started may not know its speed yet, and then believes in weeks.
  const left = over ? 0 : Math.min(view.left_s ?? 0, 20 * Math.max(now, 1));
  const end = Math.max(now + left, view.predicted?.time_s_p90 ?? view.predicted?.time_s ?? 0, 1e-3);
  const deadline = view.deadline_s ?? 0;
  return deadline > end && deadline <= 2.5 * end ? beyond(deadline) : end;
}
