import { percent } from '../format';
import type { Share } from '../types';
import { LegendKey } from './legend';

const parts: [keyof Share, string, string][] = [
  ['useful', 'Useful', 'var(--useful)'],
  ['redundant', 'Redundant', 'var(--redundant)'],
  ['reconfigure', 'Reconfiguring', 'var(--reconfigure)'],
  ['lost', 'Lost', 'var(--lost)'],
  ['idle', 'Idle', 'var(--idle)'],
];

export interface ShareRow {
  name: string;
  share: Share | null | undefined;
}

function Bar({ name, share, named }: { name: string; share: Share; named: boolean }) {
  const told = parts.map(([key, word]) => `${word.toLowerCase()} ${percent(share[key])}`).join(', ');
  return (
    <div class={named ? 'share-row named' : 'share-row'}>
      {named && <span class="share-name">{name}</span>}
      <div class="share-bar" role="img" aria-label={`Machine time of ${name}: ${told}`}>
        {parts.map(([key, , colour]) =>
          share[key] > 0 ? (
            <span key={key} class={`share-part ${key}`} style={{ flexGrow: share[key], background: colour }}>
              {share[key] >= 0.09 && <span>{percent(share[key], 0)}</span>}
            </span>
          ) : null,
        )}
      </div>
    </div>
  );
}

/** Where machine time went: one stacked bar per row, always in the same order. */
export function ShareBars({ rows }: { rows: ShareRow[] }) {
  const known = rows.filter((row): row is { name: string; share: Share } => !!row.share);
  if (known.length === 0) return <p class="empty">No machine was held yet.</p>;
  const only = known.length === 1 ? known[0]!.share : null;
  return (
    <div class="shares">
      {known.map((row, i) => (
        <Bar key={i} {...row} named={known.length > 1} />
      ))}
      <span class={only ? 'legend spread' : 'legend'}>
        {parts.map(([key, word, colour]) => (
          <LegendKey key={key} name={word} colour={colour} look="box">
            {only && (
              <span class="told" data-testid={`share-${key}`} data-value={only[key]}>
                {percent(only[key])}
              </span>
            )}
          </LegendKey>
        ))}
      </span>
    </div>
  );
}
