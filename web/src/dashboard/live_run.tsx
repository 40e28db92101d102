import { useEffect, useState } from 'preact/hooks';
import { api, follow, type Link } from '../api';
import { Problem } from '../parts/card';
import { StateChip } from '../parts/state_chip';
import { RunView } from '../run/run_view';
import type { View } from '../types';

const words: Record<Link, string> = {
  connecting: 'connecting',
  live: 'live',
  lost: 'lost connection, trying again',
  over: 'over',
};
const none: View[] = [];

/** A run as it goes on. */
export function LiveRun({ name }: { name: string }) {
  const [view, setView] = useState<View | null>(null);
  const [link, setLink] = useState<Link>('connecting');
  const [fault, setFault] = useState<string | null>(null);
  useEffect(
    () =>
      follow(name, {
        onView: (next) => (setView(next), setFault(null)),
        onLink: setLink,
        onFault: setFault,
      }),
    [name],
  );
  // An event source does not say why it failed: ask in the ordinary way.
  useEffect(() => {
    if (link !== 'lost' || view !== null) return;
    const stop = new AbortController();
    api
      .run(name, stop.signal)
      .then(
        setView,
        (error: unknown) => stop.signal.aborted || setFault(error instanceof Error ? error.message : String(error)),
      );
    return () => stop.abort();
  }, [link, name]);
  return (
    <>
      <div class="title">
        <h1>{name}</h1>
        {view && <StateChip state={view.state} phase={view.phase} />}
        <span class={`link ${link}`} role="status" data-testid="link" data-value={link}>
          <span class="lamp" aria-hidden="true" />
          {words[link]}
        </span>
      </div>
      {fault && <Problem title="This run cannot be shown.">{fault}</Problem>}
      {view?.failure && (
        <p class="problem" role="alert">
          {view.failure}
        </p>
      )}
      <h2 class="unseen">Run</h2>
      {view ? (
        <RunView view={view} others={none} />
      ) : (
        !fault && (
          <p class="empty" role="status">
            Waiting for the run.
          </p>
        )
      )}
    </>
  );
}
