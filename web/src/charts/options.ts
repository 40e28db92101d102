import uPlot from 'uplot';
import { ink } from '../colours';
import { tick } from '../format';
import { timeSteps } from '../scale';
import { largest, smallest } from '../series';
import { font } from './draw';
import type { Rule, Series } from './spec';

/** Room for the labels left and right of every plot: equal, so that charts above each other share their time axis. */
export const gutter = { left: 64, right: 22, rightAxis: 56 };

export interface Ranges {
  end: () => number;
  series: () => Series[];
  rules: () => Rule[];
  fromZero: boolean;
}

/** From zero, or a little below the lowest, to a little above the highest value or rule. */
export function valueRange(series: Series[], rules: Rule[], fromZero: boolean): [number, number] {
  const tops = series.map((one) => largest(one.y));
  const lows = series.map((one) => smallest(one.y));
  for (const rule of rules) if (rule.axis === 'y') (tops.push(rule.at ?? null), lows.push(rule.at ?? null));
  const top = largest(tops) ?? 1;
  const low = fromZero ? Math.min(0, smallest(lows) ?? 0) : (smallest(lows) ?? 0);
  const room = (top - low || Math.abs(top) || 1) * 0.08;
  return [fromZero ? low : low - room, top + room];
}

function path(one: Series): uPlot.Series.PathBuilder | undefined {
  if (one.between === 'step') return uPlot.paths.stepped!({ align: 1 });
  if (one.between === 'points') return () => null;
  return uPlot.paths.linear!();
}

function seriesOptions(one: Series): uPlot.Series {
  const colour = ink(one.colour);
  const points = one.between === 'points';
  return {
    label: one.name,
    scale: one.right ? 'right' : 'y',
    stroke: colour,
    width: one.width ?? (one.fill === 'solid' ? 1 : 2),
    dash: one.dash,
    fill: one.fill === 'solid' ? colour : one.fill === 'faint' ? colour + '22' : undefined,
    paths: path(one),
    spanGaps: true,
    points: { show: points, size: 8, fill: ink('var(--card)'), stroke: colour, width: 2 },
  };
}

export function chartOptions(
  size: { width: number; height: number },
  series: Series[],
  ranges: Ranges,
  format: (value: number) => string,
  formatRight: ((value: number) => string) | undefined,
  sync: string | undefined,
  ruled: boolean,
): uPlot.Options {
  const labels = {
    stroke: ink('var(--quiet)'),
    font: `11px ${font}`,
    grid: { stroke: ink('var(--grid)'), width: 1 },
    ticks: { show: false },
  };
  const own = (right: boolean) => ranges.series().filter((one) => !!one.right === right);
  return {
    ...size,
    legend: { show: false },
    padding: [10, formatRight ? 0 : gutter.right, 0, 0],
    cursor: {
      y: false,
      drag: { x: true, y: false },
      points: { show: false },
      ...(sync ? { sync: { key: sync, scales: ['x', null] as [string, null] } } : {}),
    },
    scales: {
      x: { time: false, range: (_u, min, max) => (min == null || max == null ? [0, ranges.end()] : [min, max]) },
      y: { range: () => valueRange(own(false), ranges.rules(), ranges.fromZero) },
      // Headroom keeps the second line out of the first one's way.
      ...(formatRight ? { right: { range: () => [0, 1.4 * valueRange(own(true), [], true)[1]] } } : {}),
    },
    axes: [
      { ...labels, space: 64, incrs: timeSteps, size: 26, gap: 4, values: (_u, at) => at.map(tick) },
      {
        ...labels,
        grid: { ...labels.grid, show: ruled },
        size: gutter.left,
        gap: 6,
        space: 34,
        values: (_u, at) => at.map(format),
      },
      ...(formatRight
        ? [
            {
              ...labels,
              scale: 'right',
              side: 1 as const,
              grid: { show: false },
              size: gutter.rightAxis,
              gap: 6,
              space: 34,
              values: (_u: uPlot, at: number[]) => at.map(formatRight),
            },
          ]
        : []),
    ],
    series: [{}, ...series.map(seriesOptions)],
  };
}
