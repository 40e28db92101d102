import { useEffect, useState } from 'preact/hooks';

export type Route = { page: 'runs' } | { page: 'run'; name: string } | { page: 'plan' } | { page: 'weather' };

/** #/runs, #/runs/NAME, #/plan, #/weather; anything else is the list of runs. */
export function routeOf(hash: string): Route {
  const [page, name] = hash.replace(/^#\/?/, '').split('/');
  if (page === 'plan' || page === 'weather') return { page };
  if (page === 'runs' && name) {
    try {
      return { page: 'run', name: decodeURIComponent(name) };
    } catch {
      return { page: 'runs' };
    }
  }
  return { page: 'runs' };
}

export function runHash(name: string): string {
  return `#/runs/${encodeURIComponent(name)}`;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(window.location.hash));
  useEffect(() => {
    const onChange = () => setRoute(routeOf(window.location.hash));
    window.addEventListener('hashchange', onChange);
    onChange(); // it may have changed before anybody listened
    return () => window.removeEventListener('hashchange', onChange);
  }, []);
  return route;
}
