import { describe, expect, it } from 'vitest';
import { fixture } from '../fixture';
import type { Happening, Machine } from '../types';
import { kindCounts, marks } from './kinds';
import { lanes } from './lanes';
import { offerColours } from './offers';

const view = fixture('running').views[0]!;

function machine(from_s: number, to_s: number | null): Machine {
  return { name: 'w', type: 't', market: 'spot', usd_per_hour: 1, from_s, to_s, end: null, notice_s: null };
}

describe('lanes', () => {
  it('gives a replacement the row of what it replaces', () => {
    expect(lanes([machine(0, 5), machine(0, null), machine(6, null)])).toEqual({ lane: [0, 1, 0], count: 2 });
  });
  it('never lets two machines share a row at one time', () => {
    const { lane } = lanes(view.machines);
    view.machines.forEach((a, i) =>
      view.machines.forEach((b, j) => {
        if (i < j && lane[i] === lane[j])
          expect(Math.min(a.to_s ?? Infinity, b.to_s ?? Infinity)).toBeLessThanOrEqual(Math.max(a.from_s, b.from_s));
      }),
    );
  });
});

describe('marks', () => {
  const at = (id: number, t_s: number, kind: string): Happening => ({
    id,
    t_s,
    kind,
    text: '',
    why: null,
    worker: null,
    stall_s: null,
    cost_usd: null,
  });
  it('puts together what would overlap, under the gravest kind', () => {
    const list = marks([at(1, 0, 'joined'), at(2, 1, 'lost'), at(3, 9, 'assign')], (t) => 10 * t, 100, 20);
    expect(list.map((mark) => [mark.x, mark.kind, mark.happenings.length])).toEqual([
      [0, 'lost', 2],
      [90, 'assign', 1],
    ]);
  });
  it('leaves out what is outside the window', () =>
    expect(marks([at(1, -5, 'lost'), at(2, 50, 'lost')], (t) => 10 * t, 100, 20)).toEqual([]));
  it('are never closer than asked for', () => {
    const list = marks(view.happenings, (t) => t * 15, 900, 22);
    list.slice(1).forEach((mark, i) => expect(mark.x - list[i]!.x).toBeGreaterThanOrEqual(22));
    expect(list.reduce((n, mark) => n + mark.happenings.length, 0)).toBe(view.happenings.length);
  });
});

it('counts kinds, gravest first', () => {
  const counts = kindCounts(view.happenings);
  expect(counts[0]![0]).toBe('lost');
  expect(counts.reduce((n, [, times]) => n + times, 0)).toBe(view.happenings.length);
});

it('gives every machine a colour, each offer its own', () => {
  const colours = offerColours(view);
  expect(new Set(colours.values()).size).toBe(colours.size);
  expect(view.machines.every((one) => colours.has(`${one.type} ${one.market}`))).toBe(true);
});
