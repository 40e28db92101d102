import type { ComponentChildren } from 'preact';
import { useErrorBoundary } from 'preact/hooks';

interface CardProps {
  title: string;
  /** A few words beside the title. */
  aside?: ComponentChildren;
  wide?: boolean;
  children: ComponentChildren;
}

/** A titled part of the page. What breaks inside stays inside. */
export function Card({ title, aside, wide, children }: CardProps) {
  const [error] = useErrorBoundary();
  return (
    <section class={wide ? 'card wide' : 'card'} aria-label={title}>
      <header>
        <h3>{title}</h3>
        {aside != null && <span class="aside">{aside}</span>}
      </header>
      {error ? (
        <p class="problem">This part could not be drawn: {error instanceof Error ? error.message : String(error)}</p>
      ) : (
        children
      )}
    </section>
  );
}

export function Problem({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="notice-box" role="alert">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty-box">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}
