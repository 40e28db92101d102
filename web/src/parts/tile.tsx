import type { ComponentChildren } from 'preact';
import type { Num } from '../types';

interface FigureProps {
  id: string;
  value: Num | undefined | string;
  children: ComponentChildren;
}

/** A number that tests can read: the text is for people, data-value is the number itself. */
export function Figure({ id, value, children }: FigureProps) {
  return (
    <span data-testid={id} data-value={value ?? ''}>
      {children}
    </span>
  );
}

interface TileProps {
  title: string;
  figure: ComponentChildren;
  /** Share of the way, 0 to 1: drawn as a bar under the figure. */
  done?: Num;
  tone?: 'good' | 'bad' | 'warn' | null;
  children?: ComponentChildren;
}

export function Tile({ title, figure, done, tone, children }: TileProps) {
  return (
    <div class={tone ? `tile ${tone}` : 'tile'}>
      <div class="tile-title">{title}</div>
      <div class="tile-figure">{figure}</div>
      {done != null && (
        <div class="meter" aria-hidden="true">
          <span style={{ width: `${Math.min(1, Math.max(0, done)) * 100}%` }} />
        </div>
      )}
      <div class="tile-notes">{children}</div>
    </div>
  );
}
