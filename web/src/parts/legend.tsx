import type { ComponentChildren } from 'preact';

interface Key {
  name: string;
  colour: string;
  look: 'box' | 'line' | 'ring' | 'hatch' | 'cross';
  dash?: number[];
  children?: ComponentChildren;
}

function Swatch({ colour, look, dash }: Omit<Key, 'name'>) {
  return (
    <svg class="swatch" width="18" height="12" viewBox="0 0 18 12" aria-hidden="true" style={{ color: colour }}>
      {look === 'box' && <rect x="2" y="1" width="14" height="10" rx="2" fill="currentColor" />}
      {look === 'line' && (
        <path
          d="M0 6H18"
          stroke="currentColor"
          stroke-width="2.5"
          stroke-dasharray={dash?.map((n) => n * 0.6).join(' ')}
        />
      )}
      {look === 'ring' && <circle cx="9" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="2" />}
      {look === 'cross' && <path d="M5 2l8 8M13 2l-8 8" stroke="currentColor" stroke-width="2.2" />}
      {look === 'hatch' && <path d="M1 11L7 1M6 11L12 1M11 11L17 1" stroke="currentColor" stroke-width="1.6" />}
    </svg>
  );
}

export function LegendKey({ name, children, ...look }: Key) {
  return (
    <span class="key">
      <Swatch {...look} />
      <span>{name}</span>
      {children}
    </span>
  );
}
