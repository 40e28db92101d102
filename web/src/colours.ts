// Colours live in style/base.css, once for light and once for dark. Canvases need them resolved.

/** Lines get these in order; the order is chosen so that neighbours differ for colour-blind people too. */
const wheel = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--c7', '--c8'];

export function wheelColour(index: number): string {
  return `var(${wheel[index % wheel.length]!})`;
}

const fills = ['--f1', '--f2', '--f3', '--f4', '--f5', '--f6', '--f7', '--f8'];

/** Areas and bars: brighter than lines, with text on them. */
export function fillColour(index: number): string {
  return `var(${fills[index % fills.length]!})`;
}

/** The colour of text on a fill. */
export function textOn(fill: string): string {
  const number = /^var\(--f(\d)\)$/.exec(fill)?.[1];
  return number === undefined ? 'var(--ink)' : `var(--on-f${number})`;
}

let resolved = new Map<string, string>();

/** `var(--x)` as the colour it stands for now. */
export function ink(colour: string): string {
  const name = /^var\((--[\w-]+)\)$/.exec(colour)?.[1];
  if (name === undefined) return colour;
  let value = resolved.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    resolved.set(name, value);
  }
  return value;
}

export function forgetInk(): void {
  resolved = new Map();
}

/** Dash patterns beside the colours, so that lines can be told apart without them. */
export function dashes(index: number): number[] | undefined {
  return [undefined, [8, 3], [2, 3], [10, 3, 2, 3], [5, 5]][index % 5];
}
