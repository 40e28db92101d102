// Writes the made-up fixtures again: node tools/fixtures.mjs. Plans are real answers of mayfly plan --json and are left alone.
import { readFileSync, writeFileSync } from 'node:fs';
import { makeReplay } from './make_replay.mjs';
import { makeView } from './make_view.mjs';

const folder = new URL('../fixtures/', import.meta.url);
const doc = (title, parts) => ({
  format: 'mayfly-report/1',
  title,
  made: '2026-11-16T21:00:00Z',
  version: 'mayfly 0.1.0',
  views: [],
  plan: null,
  replay: null,
  profile: null,
  ...parts,
});
const write = (name, content) => writeFileSync(new URL(name, folder), JSON.stringify(content) + '\n');

const stall = (seconds, low, high, share) => ({ seconds, seconds_low: low, seconds_high: high, share });

const plan = JSON.parse(readFileSync(new URL('plan.json', folder), 'utf8')).plan;
const nothing = (keys) => Object.fromEntries(keys.map((key) => [key, null]));

/** A journal of which next to nothing is known. */
const bare = {
  ...makeView({ name: 'bare' }),
  ...nothing([
    'state',
    'phase',
    'time_s',
    'step',
    'samples',
    'target_samples',
    'epochs',
    'loss',
    'target_loss',
    'samples_per_s',
    'left_s',
    'deadline_s',
    'deadline_met',
    'budget_usd',
    'cost_usd',
    'usd_per_hour',
    'on_demand_cost_usd',
    'preemptions',
    'samples_redone',
    'share',
    'predicted',
  ]),
  machines: [],
  machines_total: 0,
  counts: { t_s: [], series: [], used: [] },
  shapes: [],
  progress: { t_s: [], samples: [] },
  losses: { t_s: [], loss: [] },
  validation: { t_s: [], loss: [], accuracy: [] },
  money: { t_s: [], usd: [], usd_per_hour: [] },
  happenings: [],
  happenings_total: 0,
  scorecard: [],
};

write('bare.json', doc('bare', { views: [bare] }));
write(
  'risky_plan.json',
  doc('A plan tried on weather', {
    plan: {
      ...plan,
      deadline_probability: 0.83,
      deadline_probability_p10: 0.79,
      deadline_probability_p90: 0.87,
      budget_probability: 1,
      cost_usd_p50: 2.71,
      cost_usd_p95: 3.4,
      risk: { trace: 'p3', policy: 'reactive', windows: 512 },
      ties: plan.runners_up.slice(0, 1),
      notes: ['p3.16xlarge left out: its price is not known'],
    },
  }),
);
write('running.json', doc('survive', { views: [makeView()] }));
write(
  'finished.json',
  doc('digits', {
    views: [
      makeView({ name: 'digits', over: true, now_s: 60.4, seed: 21 }),
      makeView({ name: 'digits, replayed', over: true, now_s: 66.2, seed: 33, points: 60, plan: false }),
    ],
    plan,
  }),
);
write('replay.json', doc('Two weeks of weather', { replay: makeReplay() }));
write(
  'stalls.json',
  doc('Profile of resnet', {
    profile: {
      format: 'mayfly-profile/1',
      name: 'resnet',
      origin: { source: 'mayfly profile', date: '2026-11-10', machine: 'EPYC 7B13, 8 cores' },
      job: { model: 'ResNet-18', dataset: 'pictures' },
      stalls: {
        devices: 2,
        batch: 64,
        step_s: 0.412,
        interconnect: stall(0.031, 0.022, 0.04, 0.11),
        prep: stall(0.118, 0.109, 0.127, 0.4),
        fetch: stall(0.004, -0.006, 0.014, 0.01),
        network: stall(0.083, 0.07, 0.095, 0.28),
      },
    },
  }),
);
