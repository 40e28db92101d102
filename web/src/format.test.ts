import { describe, expect, it } from 'vitest';
import {
  clusterText,
  count,
  dash,
  duration,
  marketsText,
  moment,
  percent,
  plural,
  significant,
  tick,
  usd,
  whole,
} from './format';

describe('duration', () => {
  it('has the parts a person would say', () => {
    expect([0, 0.0372, 0.84, 3.478, 52.1, 112, 7500, 273600].map(duration)).toEqual([
      '0s',
      '37.2ms',
      '840ms',
      '3.48s',
      '52.1s',
      '1m52s',
      '2h05m',
      '3d04h',
    ]);
  });
  it('does not say 60 seconds or 60 minutes', () => {
    expect([0.9999, 59.97, 3599.6, 86399].map(duration)).toEqual(['1.00s', '1m00s', '1h00m', '1d00h']);
  });
  it('shows what is not known as a dash', () => {
    expect([null, undefined, NaN, Infinity].map(duration)).toEqual([dash, dash, dash, dash]);
  });
  it('keeps the sign', () => expect(duration(-75)).toBe('−1m15s'));
});

describe('tick', () => {
  it('leaves out parts that are zero', () => {
    expect([0, 0.5, 30, 60, 90, 7200, 5400, 172800].map(tick)).toEqual([
      '0',
      '0.5s',
      '30s',
      '1m',
      '1m30s',
      '2h',
      '1h30m',
      '2d',
    ]);
  });
});

describe('usd', () => {
  it('has cents, or two digits where cents say nothing', () => {
    expect([0, 0.0012, 0.53, 1.5286, 16450.56, 0.0000074].map(usd)).toEqual([
      '$0',
      '$0.0012',
      '$0.53',
      '$1.53',
      '$16,451',
      '$0.0000074',
    ]);
  });
  it('shows what is not known as a dash, not as nothing paid', () => expect(usd(null)).toBe(dash));
});

describe('count', () => {
  it('has three digits and a unit', () => {
    expect([0, 7, 640, 999.7, 48000, 1234567, 421141071].map(count)).toEqual([
      '0',
      '7',
      '640',
      '1.00k',
      '48.0k',
      '1.23M',
      '421M',
    ]);
  });
});

it('writes numbers of a size without an exponent', () => {
  expect([significant(0.000012345, 3), significant(1200, 2), significant(0.5, 3)]).toEqual([
    '0.0000123',
    '1200',
    '0.5',
  ]);
});

it('says one machine and two machines', () => {
  expect([plural(1, 'machine'), plural(2000, 'machine')]).toEqual(['1 machine', '2,000 machines']);
  expect([whole(1234.4), percent(0.984), percent(null)]).toEqual(['1,234', '98.4\u202f%', dash]);
});

describe('clusterText', () => {
  const line = (type: string, n: number, market = 'spot') => ({ type, n, market, zone: null, usd_per_hour: 1 });
  it('puts zones of one type together', () => {
    expect(clusterText({ cluster: [line('p3.2xlarge', 2), line('g4dn.xlarge', 1), line('p3.2xlarge', 1)] })).toBe(
      '3 × p3.2xlarge + 1 × g4dn.xlarge',
    );
  });
  it('speaks of functions where there are no machines', () => {
    const option = { cluster: [], functions: 7, memory_mib: 1728, platform: 'aws-lambda' };
    expect(clusterText(option)).toBe('7 functions of 1728 MiB on aws-lambda');
    expect(marketsText(option)).toBe('serverless');
  });
});

it('tells times in words and leaves alone what is none', () => {
  expect(moment('2026-11-16T21:00:00Z')).toBe('16 Nov 2026, 21:00 UTC');
  expect([moment('soon'), moment(null)]).toEqual(['soon', dash]);
});
