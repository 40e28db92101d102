import { expect, it } from 'vitest';
import { routeOf } from '../route';
import { fixture } from '../fixture';
import type { Policy, Profile, Replay } from '../types';
import { stallRows } from '../profile/rows';
import { samplesAt, usdPerMillion } from './figures';

const replay = fixture('replay').replay as Replay;
const policy = (name: string) => replay.policies.find((one) => one.policy === name) as Policy;

// 2058.85 USD for 421.141071 million samples: 4.89 a million.
it('tells the price of a million samples', () => expect(usdPerMillion(policy('liveput'))).toBeCloseTo(4.89, 2));

it('has no price where nothing was trained', () =>
  expect(usdPerMillion({ ...policy('liveput'), samples: 0 })).toBeNull());

it('ends with all samples and starts with none', () => {
  expect(samplesAt(policy('reactive'), 0)).toBe(0);
  expect(samplesAt(policy('reactive'), replay.trace.duration_s)).toBe(416496435);
  expect(samplesAt(policy('reactive'), null)).toBe(416496435);
});

it('takes stalls off the step to get compute', () => {
  const stalls = (fixture('stalls').profile as Profile).stalls!;
  // 0.412 - 0.031 - 0.118 - 0.004 = 0.259 s.
  expect(stallRows(stalls)[0]!.seconds).toBeCloseTo(0.259);
  expect(stallRows({ ...stalls, devices: 1 }).map((row) => row.name)).toEqual(['compute', 'prep', 'fetch']);
});

it('finds pages by their address', () => {
  expect(['', '#/plan', '#/runs/a%2Fb', '#/runs/%', '#/else'].map(routeOf)).toEqual([
    { page: 'runs' },
    { page: 'plan' },
    { page: 'run', name: 'a/b' },
    { page: 'runs' },
    { page: 'runs' },
  ]);
});
