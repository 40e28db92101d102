import type { ComponentChildren } from 'preact';
import { toggleTheme, useTheme } from '../theme';

function Emblem() {
  return (
    <svg class="emblem" viewBox="0 0 32 32" aria-hidden="true">
      <g fill="currentColor">
        <ellipse cx="9" cy="9.5" rx="8.2" ry="3.1" transform="rotate(24 9 9.5)" />
        <ellipse cx="23" cy="9.5" rx="8.2" ry="3.1" transform="rotate(-24 23 9.5)" />
        <ellipse cx="11.4" cy="15.6" rx="4.6" ry="2" transform="rotate(-16 11.4 15.6)" opacity="0.65" />
        <ellipse cx="20.6" cy="15.6" rx="4.6" ry="2" transform="rotate(16 20.6 15.6)" opacity="0.65" />
      </g>
      <path
        d="M16 8v14M16 22c-1 4-3 7-6 9M16 22v9.5M16 22c1 4 3 7 6 9"
        fill="none"
        stroke="currentColor"
        stroke-width="1.8"
        stroke-linecap="round"
      />
    </svg>
  );
}

/** What is around every page: the name, the way to other pages, light or dark. */
export function Frame({
  nav,
  foot,
  children,
}: {
  nav?: ComponentChildren;
  foot?: ComponentChildren;
  children: ComponentChildren;
}) {
  const theme = useTheme();
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => (event.preventDefault(), document.getElementById('main')?.focus())}
      >
        to the content
      </a>
      <header class="top">
        <span class="brand">
          <Emblem />
          mayfly
        </span>
        {nav}
        <button
          type="button"
          class="theme"
          onClick={toggleTheme}
          aria-label={theme === 'dark' ? 'Switch to light' : 'Switch to dark'}
        >
          <span aria-hidden="true">{theme === 'dark' ? '☀' : '☾'}</span>
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      {foot && <footer>{foot}</footer>}
    </>
  );
}
