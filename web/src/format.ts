import type { MachineLine, Num, Option } from './types';

export const dash = '–';
// Keeps a number and its unit on one line.
const thin = '\u202f';

// toLocaleString makes a new one at each call, which live axes would feel.
const grouped = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 0 });

type Maybe = Num | undefined;

function known(x: Maybe): x is number {
  return typeof x === 'number' && Number.isFinite(x);
}

function padded(x: number): string {
  return String(x).padStart(2, '0');
}

/** 840ms, 3.48s, 52.1s, 1m52s, 2h05m, 3d04h. */
export function duration(seconds: Maybe): string {
  if (!known(seconds)) return dash;
  if (seconds < 0) return '−' + duration(-seconds);
  if (seconds === 0) return '0s';
  if (seconds < 0.9995) return `${significant(seconds * 1e3, 3)}ms`;
  if (seconds < 9.995) return `${seconds.toFixed(2)}s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)}m${padded(whole % 60)}s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)}h${padded(minutes % 60)}m`;
  const hours = Math.round(seconds / 3600);
  return `${Math.floor(hours / 24)}d${padded(hours % 24)}h`;
}

/** For axis labels: as duration, without parts that are zero. */
export function tick(seconds: number): string {
  if (seconds === 0) return '0';
  if (seconds < 60) return `${significant(seconds, 4)}s`;
  return duration(seconds).replace(/^(\d+[mhd])00[smh]$/, '$1');
}

/** Up to `digits` significant digits, without an exponent or zeros at the end. */
export function significant(x: number, digits: number): string {
  if (x === 0) return '0';
  const places = Math.min(20, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(x)))));
  const text = x.toFixed(places);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** $16,451, $1.53, $0.0012. */
export function usd(x: Maybe): string {
  if (!known(x)) return dash;
  if (x < 0) return '−' + usd(-x);
  if (x === 0) return '$0';
  if (x >= 1000) return '$' + grouped.format(x);
  if (x >= 0.995) return '$' + x.toFixed(2);
  const places = Math.max(2, 1 - Math.floor(Math.log10(x)));
  return '$' + x.toFixed(Math.min(places, 12));
}

/** 640, 48.0k, 421M. */
export function count(x: Maybe): string {
  if (!known(x)) return dash;
  const size = Math.abs(x);
  if (size < 999.5) return significant(x, 3);
  const units: [number, string][] = [
    [1e3, 'k'],
    [1e6, 'M'],
    [1e9, 'G'],
    [1e12, 'T'],
  ];
  const fitting = units.find(([unit]) => size < unit * 999.5) ?? units[3]!;
  const scaled = x / fitting[0];
  return scaled.toFixed(Math.abs(scaled) < 9.995 ? 2 : Math.abs(scaled) < 99.95 ? 1 : 0) + fitting[1];
}

export function percent(share: Maybe, places = 1): string {
  return known(share) ? `${(share * 100).toFixed(places)}${thin}%` : dash;
}

export function lossText(x: Maybe): string {
  return known(x) ? significant(x, 3) : dash;
}

export function whole(x: Maybe): string {
  return known(x) ? grouped.format(x) : dash;
}

/** 1 machine, 2 machines. */
export function plural(n: number, one: string): string {
  return `${whole(n)} ${one}${n === 1 ? '' : 's'}`;
}

export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function lineText(line: MachineLine): string {
  return `${line.n} × ${line.type}`;
}

/** The workers of an option in words; zones of one type are put together. */
export function clusterText(option: Partial<Option>): string {
  if (option.functions)
    return `${option.functions} functions of ${option.memory_mib ?? dash} MiB on ${option.platform ?? dash}`;
  const sums = new Map<string, MachineLine>();
  for (const line of option.cluster ?? []) {
    const sum = sums.get(line.type);
    sums.set(line.type, sum ? { ...sum, n: sum.n + line.n } : line);
  }
  return sums.size === 0 ? dash : [...sums.values()].map(lineText).join(' + ');
}

export function serversText(option: Partial<Option>): string {
  return (option.servers ?? []).map(lineText).join(' + ');
}

export function marketsText(option: Partial<Option>): string {
  if (option.functions) return 'serverless';
  return [...new Set((option.cluster ?? []).map((line) => line.market))].join(', ');
}

/** 2026-11-16T21:00:00Z as 16 Nov 2026, 21:00 UTC; what is no time stays as it is. */
export function moment(iso: string | null): string {
  const date = new Date(iso ?? '');
  if (iso === null || Number.isNaN(date.getTime())) return iso ?? dash;
  const day = date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });
  return `${day}, ${padded(date.getUTCHours())}:${padded(date.getUTCMinutes())} UTC`;
}
