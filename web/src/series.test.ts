import { describe, expect, it } from 'vitest';
import { aligned, apart, heldUntil, largest, smallest, stacked, valueAt } from './series';

describe('apart', () => {
  it('keeps both points of a jump', () => {
    const moved = apart([0, 5, 5, 9]);
    expect(moved[2]).toBeGreaterThan(5);
    expect(moved[2]).toBeLessThan(5.001);
  });
  it('gives back what needs no change', () => {
    const times = [0, 1, 2];
    expect(apart(times)).toBe(times);
  });
});

describe('aligned', () => {
  it('holds steps and leaves lines open between their points', () => {
    const { x, ys } = aligned([
      { t: [0, 4], y: [1, 2], between: 'step' },
      { t: [0, 2, 6], y: [10, 20, 30], between: 'line' },
    ]);
    expect(x).toEqual([0, 2, 4, 6]);
    expect(ys).toEqual([
      [1, 1, 2, undefined],
      [10, 20, undefined, 30],
    ]);
  });
  it('keeps unknown values unknown', () =>
    expect(aligned([{ t: [0, 1], y: [null, 3], between: 'line' }]).ys).toEqual([[null, 3]]));
  it('is empty without points', () =>
    expect(aligned([{ t: [], y: [], between: 'line' }])).toEqual({ x: [], ys: [[]] }));
});

describe('valueAt', () => {
  // From 10 at 2 s to 30 at 4 s: half way it is 20.
  const line = { t: [2, 4], y: [10, 30], between: 'line' as const };
  it('lies on the line between two points', () => expect(valueAt(line, 3)).toBe(20));
  it('holds a step until the next', () => expect(valueAt({ ...line, between: 'step' }, 3.9)).toBe(10));
  it('knows nothing outside', () => expect([valueAt(line, 1), valueAt(line, 5)]).toEqual([null, null]));
  it('takes the later of two points at one time', () =>
    expect(valueAt({ t: [0, 1, 1, 2], y: [0, 8, 4, 9], between: 'line' }, 1)).toBe(4));
});

it('stacks rows on top of each other', () => {
  expect(
    stacked([
      [1, 2],
      [3, 0],
      [1, 1],
    ]),
  ).toEqual([
    [1, 2],
    [4, 2],
    [5, 3],
  ]);
});

describe('heldUntil', () => {
  it('draws the last value up to the end', () =>
    expect(heldUntil([0, 2], [[1, 5]], 7)).toEqual({ t: [0, 2, 7], rows: [[1, 5, 5]] }));
  it('adds nothing where the end is not later, or not known', () => {
    expect(heldUntil([0, 2], [[1, 5]], 2).t).toEqual([0, 2]);
    expect(heldUntil([0, 2], [[1, 5]], null).t).toEqual([0, 2]);
    expect(heldUntil([], [[]], 5).t).toEqual([]);
  });
});

it('passes over what is not known', () => {
  expect([largest([null, 2, undefined, 5]), smallest([null, 2, 5]), largest([null])]).toEqual([5, 2, null]);
});
