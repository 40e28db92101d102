import { fillColour, textOn } from '../colours';
import { duration, percent } from '../format';
import { Card } from '../parts/card';
import { LegendKey } from '../parts/legend';

const order = [
  'compute',
  'pcie',
  'interconnect',
  'worker-network',
  'server-network',
  'server-cpu',
  'fetch',
  'prep',
  'storage',
];
const places = [0, 3, 5, 1, 2, 4, 6, 7, 7];

export function orderedParts(parts: Record<string, number>): [string, number][] {
  const place = (name: string) => (order.indexOf(name) < 0 ? order.length : order.indexOf(name));
  return Object.entries(parts).sort((a, b) => place(a[0]) - place(b[0]));
}

function colourOf(name: string): string {
  const at = order.indexOf(name);
  return fillColour(places[at < 0 ? places.length - 1 : at]!);
}

/** Where one step of a worker goes. */
export function Breakdown({ parts, bottleneck }: { parts: Record<string, number>; bottleneck: string | null }) {
  const list = orderedParts(parts);
  const sum = list.reduce((total, [, seconds]) => total + seconds, 0);
  const told = list.map(([name, seconds]) => `${name} ${percent(seconds / sum)}`).join(', ');
  return (
    <Card
      title="Where a step goes"
      aside={
        bottleneck ? (
          <>
            bottleneck: <strong data-testid="plan-bottleneck">{bottleneck}</strong>
          </>
        ) : undefined
      }
    >
      <div class="share-bar tall" role="img" aria-label={`One step of a worker: ${told}`}>
        {list.map(([name, seconds]) => (
          <span
            key={name}
            class={name === bottleneck ? 'share-part binding' : 'share-part'}
            style={{ flexGrow: seconds / sum, background: colourOf(name), color: textOn(colourOf(name)) }}
          >
            {seconds / sum >= 0.09 && <span>{percent(seconds / sum, 0)}</span>}
          </span>
        ))}
      </div>
      <span class="legend spread">
        {list.map(([name, seconds]) => (
          <LegendKey key={name} name={name} colour={colourOf(name)} look="box">
            <span class="told">
              {percent(seconds / sum)}, {duration(seconds)}
            </span>
          </LegendKey>
        ))}
      </span>
      <p class="small quiet">Parts of one step of a worker; in synchronous training they may overlap.</p>
    </Card>
  );
}
