/** The router. The current page is kept in the URL, so that deep links, reloads and the back button work. */
import { useEffect, useState } from 'preact/hooks';

/** What a page gets: the parameters of its path. */
export type PageProps = { readonly params: Readonly<Record<string, string>> };

const listeners = new Set<() => void>();
let navigations = 0;

/** Whether the person has navigated since the page was loaded. The first page does not take the focus. */
export function hasNavigated(): boolean {
  return navigations > 0;
}

/** Navigates to a path of the console, with or without a query. */
export function navigate(to: string, how: 'push' | 'replace' = 'push'): void {
  navigations += 1;
  if (how === 'push') history.pushState(null, '', to);
  else history.replaceState(null, '', to);
  window.scrollTo(0, 0);
  notify();
}

/** Changes the query of the current page, for filters and tabs. Empty values are removed. */
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

/** The current location. The component renders again when it changes. */
export function usePlace(): Place {
  return useLocation(currentPlace);
}

/** The current path. Changes of the query do not render the component again. */
export function usePath(): string {
  return useLocation(() => location.pathname);
}

function useLocation<T>(read: () => T): T {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const update = () => setPlace(read());
    listeners.add(update);
    update();
    return () => {
      listeners.delete(update);
    };
  }, []);
  return place;
}

/** Handles clicks on links to pages of the console without a reload, and the back button. */
export function startRouter(): void {
  addEventListener('popstate', () => {
    navigations += 1;
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

function currentPlace(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

function notify(): void {
  for (const listener of listeners) listener();
}
