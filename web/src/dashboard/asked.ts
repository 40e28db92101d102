import { useCallback, useEffect, useState } from 'preact/hooks';

export interface Asked<T> {
  answer: T | null;
  fault: string | null;
  again: () => void;
}

/** Something the page asks the server for once, or every `every_ms`. The last answer stays when a later one fails. */
export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, every_ms?: number): Asked<T> {
  const [answer, setAnswer] = useState<T | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    ask(stop.signal).then(
      (got) => (setAnswer(got), setFault(null)),
      (error: unknown) => stop.signal.aborted || setFault(error instanceof Error ? error.message : String(error)),
    );
    const timer = every_ms === undefined ? 0 : window.setTimeout(() => setTurn(turn + 1), every_ms);
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
  }, [turn, ask, every_ms]);
  const again = useCallback(() => setTurn((n) => n + 1), []);
  return { answer, fault, again };
}
