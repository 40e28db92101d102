import { asView } from './document';
import type { Choices, Plan, Replay, RunLine, View } from './types';

/** Taken from the address once and kept in memory only: addresses end up in histories and on screens. */
const token = takeToken();

function takeToken(): string | null {
  const address = new URL(window.location.href);
  const found = address.searchParams.get('token');
  if (found === null) return null;
  address.searchParams.delete('token');
  window.history.replaceState(null, '', address.pathname + address.search + address.hash);
  return found;
}

export class ApiError extends Error {
  /** 0: nobody answered. */
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

async function ask<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = {};
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let answer: Response;
  try {
    answer = await fetch(path, {
      method: body === undefined ? 'GET' : 'POST',
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError('the server does not answer; is mayfly dashboard still running?', 0);
  }
  const json: unknown = await answer.json().catch(() => null);
  if (!answer.ok) {
    const words = (json as { error?: unknown } | null)?.error;
    throw new ApiError(
      typeof words === 'string' ? words : `the server answered with status ${answer.status}`,
      answer.status,
    );
  }
  if (json === null) throw new ApiError('the answer is not JSON', answer.status);
  return json as T;
}

export interface PlanWish {
  profile: string;
  catalog: string;
  loss?: number;
  epochs?: number;
  steps?: number;
  deadline_s?: number;
  budget_usd?: number;
  markets: string[];
}

export interface ReplayWish {
  profile: string;
  trace: string;
  policies: string[];
}

export const api = {
  runs: async (signal?: AbortSignal) => (await ask<{ runs: RunLine[] }>('/api/runs', undefined, signal)).runs,
  choices: (signal?: AbortSignal) => ask<Choices>('/api/choices', undefined, signal),
  plan: (wish: PlanWish, signal?: AbortSignal) => ask<Plan>('/api/plan', wish, signal),
  replay: (wish: ReplayWish, signal?: AbortSignal) => ask<Replay>('/api/replay', wish, signal),
  run: async (name: string, signal?: AbortSignal) =>
    asView(await ask<unknown>(`/api/runs/${encodeURIComponent(name)}`, undefined, signal)),
};

export type Link = 'connecting' | 'live' | 'lost' | 'over';

export interface Follower {
  onView: (view: View) => void;
  onLink: (link: Link) => void;
  onFault: (words: string) => void;
}

const waits = [1000, 2000, 4000, 8000];

/** Follows a run until it is over; a lost connection is tried again, ever more slowly. Returns what ends it. */
export function follow(name: string, { onView, onLink, onFault }: Follower): () => void {
  const query = token === null ? '' : `?token=${encodeURIComponent(token)}`;
  let source: EventSource | null = null;
  let timer = 0;
  let tries = 0;
  function open(): void {
    source = new EventSource(`/api/runs/${encodeURIComponent(name)}/stream${query}`);
    source.addEventListener('view', (event) => {
      tries = 0;
      onLink('live');
      try {
        onView(asView(JSON.parse((event as MessageEvent<string>).data)));
      } catch (error) {
        onFault(error instanceof Error ? error.message : String(error));
      }
    });
    source.addEventListener('end', () => {
      source?.close();
      onLink('over');
    });
    source.onerror = () => {
      // The browser's own retry gives up on some errors and never says so: close, and try again here.
      source?.close();
      onLink('lost');
      timer = window.setTimeout(open, waits[Math.min(tries++, waits.length - 1)]);
    };
  }
  onLink('connecting');
  open();
  return () => {
    source?.close();
    window.clearTimeout(timer);
  };
}
