import type { Machine } from '../types';

/** One row per place in the cluster: a machine takes the lowest row that is free, so a replacement follows what it replaces. */
export function lanes(machines: Machine[]): { lane: number[]; count: number } {
  const order = machines.map((_, i) => i).sort((a, b) => machines[a]!.from_s - machines[b]!.from_s || a - b);
  const free: number[] = [];
  const lane: number[] = new Array(machines.length).fill(0);
  for (const i of order) {
    const machine = machines[i]!;
    const found = free.findIndex((until) => until <= machine.from_s);
    const own = found < 0 ? free.length : found;
    free[own] = machine.to_s ?? Infinity;
    lane[i] = own;
  }
  return { lane, count: free.length };
}
