import type { Between } from '../series';
import type { Num } from '../types';

/** One line, area or cloud of points of a chart. */
export interface Series {
  name: string;
  colour: string;
  t: number[];
  y: Num[];
  between: Between;
  /** Filled down to the axis: `solid` for stacks, `faint` under a line. */
  fill?: 'solid' | 'faint';
  dash?: number[];
  width?: number;
  /** What the legend tells where it is not `y`: in stacks y is a sum. */
  told?: Num[];
  /** Drawn against the right axis. */
  right?: boolean;
}

/** A line across the plot, such as a deadline (x) or a target (y). */
export interface Rule {
  axis: 'x' | 'y';
  at: Num | undefined;
  text: string;
  colour: string;
  dash?: number[];
}

/** A filled shape in the units of the axes. */
export interface Region {
  points: [number, number][];
  colour: string;
}

/** What of the time axis is seen, and where: pixels inside the chart's box. */
export interface Window {
  from: number;
  to: number;
  left: number;
  width: number;
}
