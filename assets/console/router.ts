/** Where the person is: the address bar is the truth, so that deep links, reloads and the back button work. */
import { useEffect, useState } from 'preact/hooks';

const listeners = new Set<() => void>();
let moves = 0;

/** How often the person went somewhere since the page was loaded; the first page does not take the focus. */
export function hasMoved(): boolean {
  return moves > 0;
}

/** Goes to a path of the console, with or without a query. */
export function navigate(to: string, how: 'push' | 'replace' = 'push'): void {
  moves += 1;
  if (how === 'push') history.pushState(null, '', to);
  else history.replaceState(null, '', to);
  window.scrollTo(0, 0);
  notify();
}

/** Changes the query of this page without going anywhere: filters and tabs. Empty values are left out. */
export function changeQuery(changes: Readonly<Record<string, string>>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  history.replaceState(null, '', text === '' ? location.pathname : `${location.pathname}?${text}`);
  notify();
}

export type Place = { readonly path: string; readonly query: URLSearchParams };

/** The place now; the component is drawn anew when it changes. */
export function usePlace(): Place {
  return useWhere(here);
}

/** The path alone: filters and tabs draw nothing anew. */
export function usePath(): string {
  return useWhere(() => location.pathname);
}

function useWhere<T>(look: () => T): T {
  const [place, setPlace] = useState(look);
  useEffect(() => {
    const update = () => setPlace(look());
    listeners.add(update);
    update();
    return () => {
      listeners.delete(update);
    };
  }, []);
  return place;
}

/** Makes every plain link to a page of the console a move without a reload, and the back button work. */
export function startRouter(): void {
  addEventListener('popstate', () => {
    moves += 1;
    notify();
  });
  document.addEventListener('click', (event) => {
    const link = (event.target as Element | null)?.closest?.<HTMLAnchorElement>('a[href]');
    if (link == null || event.defaultPrevented || !isPlain(event, link)) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}

function isPlain(event: MouseEvent, link: HTMLAnchorElement): boolean {
  const isModified = event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
  if (isModified || link.target !== '' || link.hasAttribute('download') || link.hash !== '') return false;
  return link.origin === location.origin && !/^\/(api|client|console)\//.test(link.pathname);
}

function here(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

function notify(): void {
  for (const listener of listeners) listener();
}
