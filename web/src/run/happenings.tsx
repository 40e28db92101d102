import { useMemo, useState } from 'preact/hooks';
import { duration, plural } from '../format';
import { Card } from '../parts/card';
import type { Happening } from '../types';
import { kindCounts, kindOf } from './kinds';
import { priceOf } from './mark_rows';

// Rows drawn at once: more are a click away, so that five hundred cost nothing until they are wanted.
const page = 40;

function Row({ one }: { one: Happening }) {
  const kind = kindOf(one.kind);
  const price = priceOf(one);
  return (
    <li data-kind={one.kind} data-id={one.id}>
      <time>{duration(one.t_s)}</time>
      <span class="kind" style={{ color: kind.colour }}>
        <span aria-hidden="true">{kind.glyph}</span>
        <span class="kind-word">{kind.word}</span>
      </span>
      <span class="what">
        {one.text}
        {one.why && <span class="quiet"> {one.why}</span>}
        {price && <span class="quiet"> ({price})</span>}
      </span>
    </li>
  );
}

/** What happened, newest first. */
export function Happenings({ happenings, total }: { happenings: Happening[]; total: number }) {
  const [only, setOnly] = useState<string | null>(null);
  const [shown, setShown] = useState(page);
  const counts = useMemo(() => kindCounts(happenings), [happenings]);
  const chosen = useMemo(() => {
    const kept = only === null ? happenings.slice() : happenings.filter((one) => one.kind === only);
    return kept.reverse();
  }, [happenings, only]);

  function choose(kind: string | null): void {
    setOnly(kind);
    setShown(page);
  }

  return (
    <Card
      title="What happened"
      wide
      aside={total > happenings.length ? `the ${happenings.length} latest of ${total}` : plural(total, 'happening')}
    >
      {happenings.length === 0 ? (
        <p class="empty">Nothing yet.</p>
      ) : (
        <>
          <div class="chips" role="group" aria-label="Show only one kind">
            <button type="button" class="chip" aria-pressed={only === null} onClick={() => choose(null)}>
              all {happenings.length}
            </button>
            {counts.map(([kind, n]) => (
              <button
                key={kind}
                type="button"
                class="chip"
                aria-pressed={only === kind}
                onClick={() => choose(only === kind ? null : kind)}
              >
                {kindOf(kind).word} {n}
              </button>
            ))}
          </div>
          <ol class="happenings" tabIndex={0} aria-label="What happened, newest first">
            {chosen.slice(0, shown).map((one) => (
              <Row key={one.id} one={one} />
            ))}
          </ol>
          {chosen.length > shown && (
            <button type="button" class="more" onClick={() => setShown(shown + 4 * page)}>
              show more ({chosen.length - shown} left)
            </button>
          )}
        </>
      )}
    </Card>
  );
}
