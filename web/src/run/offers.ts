import { fillColour } from '../colours';
import type { View } from '../types';

export function offerName(type: string, market: string | null): string {
  return market ? `${type} ${market}` : type;
}

/** Colours by type and market, in the order of the counts; machines no count speaks of come after. */
export function offerColours(view: View): Map<string, string> {
  const colours = new Map<string, string>();
  const names = [...view.counts.series, ...view.machines].map((one) => offerName(one.type, one.market));
  for (const name of names) if (!colours.has(name)) colours.set(name, fillColour(colours.size));
  return colours;
}
