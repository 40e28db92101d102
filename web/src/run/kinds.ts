import type { Happening } from '../types';

export type Row = 'weather' | 'decisions';

interface Kind {
  word: string;
  glyph: string;
  colour: string;
  row: Row | null;
}

// Order is weight: of several happenings at one place the first kind here gives the mark.
const kinds: Record<string, Kind> = {
  'state-lost': { word: 'state lost', glyph: '✖', colour: 'var(--lost-ink)', row: 'decisions' },
  'rolled-back': { word: 'rolled back', glyph: '↶', colour: 'var(--lost-ink)', row: 'decisions' },
  lost: { word: 'lost', glyph: '✕', colour: 'var(--lost-ink)', row: 'weather' },
  notice: { word: 'notice', glyph: '!', colour: 'var(--warn)', row: 'weather' },
  pause: { word: 'pause', glyph: '‖', colour: 'var(--warn)', row: 'decisions' },
  drain: { word: 'drain', glyph: '↓', colour: 'var(--warn)', row: 'decisions' },
  assign: { word: 'assign', glyph: '◆', colour: 'var(--accent)', row: 'decisions' },
  acquire: { word: 'acquire', glyph: '▲', colour: 'var(--accent)', row: 'decisions' },
  release: { word: 'release', glyph: '▽', colour: 'var(--accent)', row: 'decisions' },
  finish: { word: 'finish', glyph: '■', colour: 'var(--good)', row: 'decisions' },
  joined: { word: 'joined', glyph: '+', colour: 'var(--good)', row: 'weather' },
  checkpoint: { word: 'checkpoint', glyph: '○', colour: 'var(--quiet)', row: 'decisions' },
  checkpointed: { word: 'checkpointed', glyph: '●', colour: 'var(--quiet)', row: null },
  remark: { word: 'remark', glyph: '·', colour: 'var(--quiet)', row: null },
  other: { word: 'other', glyph: '·', colour: 'var(--quiet)', row: null },
};

const weights = Object.keys(kinds);

export function kindOf(name: string): Kind {
  return kinds[name] ?? { ...kinds.other!, word: name };
}

export function rowOf(happening: Happening): Row | null {
  return kindOf(happening.kind).row;
}

function weight(kind: string): number {
  const at = weights.indexOf(kind);
  return at < 0 ? weights.length : at;
}

export interface Mark {
  /** Pixels from the left of the plot, the middle of the mark. */
  x: number;
  /** Oldest first. */
  happenings: Happening[];
  kind: string;
}

/** Marks no closer than `apart` pixels: what would lie on top of each other becomes one. */
export function marks(happenings: Happening[], x: (t: number) => number, width: number, apart: number): Mark[] {
  const list: Mark[] = [];
  for (const happening of happenings) {
    const at = x(happening.t_s);
    if (at < -1 || at > width + 1) continue;
    const last = list[list.length - 1];
    if (last && at - last.x < apart) {
      last.happenings.push(happening);
      if (weight(happening.kind) < weight(last.kind)) last.kind = happening.kind;
    } else {
      list.push({ x: at, happenings: [happening], kind: happening.kind });
    }
  }
  return list;
}

/** How often each kind happened, gravest first. */
export function kindCounts(happenings: Happening[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { kind } of happenings) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].sort((a, b) => weight(a[0]) - weight(b[0]));
}
