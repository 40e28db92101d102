import { describe, expect, it } from 'vitest';
import { fixture } from './fixture';
import { fromStep, rounded, runEnd, ticks, timeTicks, toStep } from './scale';

describe('log scale', () => {
  const scale = { from: 60, to: 6000, steps: 100 };
  // Half way on a log scale is the geometric mean: sqrt(60 * 6000) = 600.
  it('has the geometric mean in its middle', () => expect(fromStep(scale, 50)).toBeCloseTo(600));
  it('goes there and back', () => expect(toStep(scale, fromStep(scale, 37))).toBe(37));
  it('stays inside', () => expect([toStep(scale, 1), toStep(scale, 1e9)]).toEqual([0, 100]));
});

it('rounds to what a person would have said', () => {
  expect([rounded(2718.3), rounded(0.04567), rounded(2718.3, 3), rounded(0)]).toEqual([2700, 0.046, 2720, 0]);
});

describe('ticks', () => {
  it('are round numbers', () => expect(ticks(0, 6.7, 5)).toEqual([0, 2, 4, 6]));
  it('of time are those of a clock', () =>
    expect(timeTicks(4000, 9000, 6)).toEqual([4500, 5400, 6300, 7200, 8100, 9000]));
});

describe('runEnd', () => {
  const running = fixture('running').views[0]!;
  it('holds what is left and a near deadline', () =>
    expect(runEnd({ ...running, time_s: 40, left_s: 20, deadline_s: 75 })).toBeCloseTo(76.5));
  it('leaves out a deadline that is far away', () => {
    expect(runEnd({ ...running, time_s: 40, left_s: 20, deadline_s: 4000, predicted: null })).toBe(60);
  });
  it('does not believe in weeks before the speed is known', () => {
    expect(runEnd({ ...running, time_s: 2, left_s: 1e6, deadline_s: null, predicted: null })).toBe(42);
  });
});
