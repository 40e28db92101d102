import type { Num } from './types';

/** How the value runs between two points: straight to the next, or held until it. */
export type Between = 'line' | 'step' | 'points';

export interface Table {
  t: number[];
  y: Num[];
  between: Between;
}

/** Times that never repeat: where a value jumps, its second point is moved by a hair so that both are drawn. */
export function apart(times: number[]): number[] {
  let moved: number[] | null = null;
  for (let i = 1; i < times.length; ++i) {
    const before = (moved ?? times)[i - 1]!;
    if (times[i]! > before) continue;
    moved ??= times.slice();
    moved[i] = before + Math.max(1e-9, Math.abs(before) * 1e-12);
  }
  return moved ?? times;
}

/** Two sorted lists of times as one, without repetitions. A sort of all of them was most of a live update's time. */
function union(a: number[], b: number[]): number[] {
  if (a === b || b.length === 0) return a;
  if (a.length === 0) return b;
  const both: number[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const left = i < a.length ? a[i]! : Infinity;
    const right = j < b.length ? b[j]! : Infinity;
    both.push(Math.min(left, right));
    if (left <= right) ++i;
    if (right <= left) ++j;
  }
  return both;
}

/** All tables over the union of their times. Steps are held; other series are undefined where they have no point. */
export function aligned(tables: Table[]): { x: number[]; ys: (Num | undefined)[][] } {
  const times = tables.map((table) => apart(table.t));
  const x = times.reduce(union, []);
  const ys = tables.map((table, index) => {
    const own = times[index]!;
    const held = table.between === 'step';
    const y: (Num | undefined)[] = new Array(x.length);
    let next = 0;
    for (let i = 0; i < x.length; ++i) {
      if (next < own.length && own[next] === x[i]) y[i] = table.y[next++] ?? null;
      else if (held && next > 0 && next < own.length) y[i] = table.y[next - 1] ?? null;
      else y[i] = undefined;
    }
    return y;
  });
  return { x, ys };
}

/** Index of the last time that is not after t; -1 where all are. */
export function lastBefore(times: number[], t: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= t) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The value at t; null before the first point, after the last, and where it is not known. */
export function valueAt(table: Table, t: number): Num {
  const { t: times, y, between } = table;
  const i = lastBefore(times, t);
  if (i < 0 || t > times[times.length - 1]!) return null;
  const here = y[i] ?? null;
  const there = y[i + 1] ?? null;
  if (between !== 'line' || here === null || there === null) return here;
  const width = times[i + 1]! - times[i]!;
  return width > 0 ? here + ((there - here) * (t - times[i]!)) / width : there;
}

/** Running sums: the first stays, each next is put on top of those before it. */
export function stacked(rows: number[][]): number[][] {
  const sums: number[][] = [];
  for (const row of rows) {
    const below = sums[sums.length - 1];
    sums.push(below ? row.map((n, i) => n + (below[i] ?? 0)) : row.slice());
  }
  return sums;
}

/** Step values that hold until `end` get a point there; otherwise the last one would not be seen. */
export function heldUntil(times: number[], rows: Num[][], end: Num): { t: number[]; rows: Num[][] } {
  const last = times[times.length - 1];
  if (last === undefined || end === null || end <= last) return { t: times, rows };
  return { t: [...times, end], rows: rows.map((row) => [...row, row[row.length - 1] ?? null]) };
}

export function largest(values: (Num | undefined)[]): Num {
  let most: Num = null;
  for (const value of values)
    if (value != null && Number.isFinite(value) && (most === null || value > most)) most = value;
  return most;
}

export function smallest(values: (Num | undefined)[]): Num {
  let least: Num = null;
  for (const value of values)
    if (value != null && Number.isFinite(value) && (least === null || value < least)) least = value;
  return least;
}
