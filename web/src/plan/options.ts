import { clusterText, serversText } from '../format';
import type { Option, Plan } from '../types';

export function sameOption(a: Option, b: Option): boolean {
  return clusterText(a) === clusterText(b) && serversText(a) === serversText(b) && a.cost_usd === b.cost_usd;
}

export type Role = 'chosen' | 'tie' | 'runner-up' | 'considered' | 'frontier';

export interface Point {
  option: Option;
  time: number;
  cost: number;
  role: Role;
}

/** Every option of a plan once, in the weightiest of its roles, fastest first. */
export function points(plan: Plan): Point[] {
  const list: Point[] = [];
  const add = (options: Option[] | undefined, role: Role) => {
    for (const option of options ?? []) {
      if (option.time_s === null || option.cost_usd === null) continue;
      if (list.some((point) => sameOption(point.option, option))) continue;
      list.push({ option, time: option.time_s, cost: option.cost_usd, role });
    }
  };
  add([plan], 'chosen');
  add(plan.ties, 'tie');
  add(plan.runners_up, 'runner-up');
  add(plan.considered, 'considered');
  add(plan.frontier, 'frontier');
  return list.sort((a, b) => a.time - b.time);
}
