import { useEffect, useState } from 'preact/hooks';
import { forgetInk } from './colours';

export type Theme = 'light' | 'dark';

const wish = window.matchMedia('(prefers-color-scheme: dark)');
let chosen: Theme | null = null;
const listeners = new Set<(theme: Theme) => void>();

export function theme(): Theme {
  return chosen ?? (wish.matches ? 'dark' : 'light');
}

function announce(): void {
  document.documentElement.dataset.theme = theme();
  forgetInk();
  for (const listener of listeners) listener(theme());
}

wish.addEventListener('change', announce);
announce();

export function toggleTheme(): void {
  chosen = theme() === 'dark' ? 'light' : 'dark';
  announce();
}

export function useTheme(): Theme {
  const [now, setNow] = useState(theme());
  useEffect(() => {
    listeners.add(setNow);
    return () => void listeners.delete(setNow);
  }, []);
  return now;
}
