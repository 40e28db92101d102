import { describe, expect, it } from 'vitest';
import { limits, targetOf, targetValue, wishOf } from '../dashboard/wish';
import { fixture } from '../fixture';
import type { Plan } from '../types';
import { points } from './options';

const plan = fixture('plan').plan as Plan;

describe('points', () => {
  const list = points(plan);
  it('has every option once, and one chosen', () => {
    expect(list.filter((point) => point.role === 'chosen')).toHaveLength(1);
    expect(new Set(list.map((point) => `${point.time} ${point.cost}`)).size).toBe(list.length);
  });
  it('goes from the fastest to the slowest', () => {
    expect(list.map((point) => point.time)).toEqual(list.map((point) => point.time).sort((a, b) => a - b));
  });
});

describe('a wish', () => {
  const resnet = { name: 'resnet', losses: { from: 0.3, to: 2.3 }, epochs: true, pipeline: false };
  it('aims at a loss where the profile has a curve, else at epochs, else at steps', () => {
    expect(targetOf(resnet).kind).toBe('loss');
    expect(targetOf({ ...resnet, losses: null }).kind).toBe('epochs');
    expect(targetOf({ ...resnet, losses: null, epochs: false }).kind).toBe('steps');
  });
  // The middle of 0.3 and 2.3 is 1.3.
  it('goes evenly along losses', () => expect(targetValue(targetOf(resnet), 100)).toBe(1.3));
  it('leaves out what is not asked for', () => {
    expect(
      wishOf({ profile: resnet, catalog: 'default', target: 0.8, deadline: 2700, budget: null, markets: ['spot'] }),
    ).toEqual({
      profile: 'resnet',
      catalog: 'default',
      loss: 0.8,
      deadline_s: 2700,
      markets: ['spot'],
    });
  });
  it('has sliders that reach beyond the whole frontier', () => {
    const { deadline, budget } = limits(plan);
    for (const option of plan.frontier!) {
      expect(option.time_s! > deadline.from && option.time_s! < deadline.to).toBe(true);
      expect(option.cost_usd! > budget.from && option.cost_usd! < budget.to).toBe(true);
    }
  });
});
