/**
 * Live updates: the server sends an event when something changes, and the pages reload their data. If events do not
 * get through, the pages reload every ten seconds.
 */
import { useEffect, useRef } from 'preact/hooks';

/** The kinds of data that changed (src/domain/cache/change-feed.ts); undefined if anything may have changed. */
export type Change = { readonly kinds: readonly string[] | undefined };

const pollEvery = 10_000;
const listeners = new Set<(change: Change) => void>();
let source: EventSource | undefined;
let poll: ReturnType<typeof setInterval> | undefined;

/** Calls `onChange` after a change, at most four times a second and never while the page is hidden. */
export function useLive(onChange: (change: Change) => void): void {
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => {
    let waiting: ReturnType<typeof setTimeout> | undefined;
    let collected: Change = { kinds: [] };
    const listener = (change: Change) => {
      collected = combined(collected, change);
      waiting ??= setTimeout(() => {
        const all = collected;
        waiting = undefined;
        collected = { kinds: [] };
        latest.current(all);
      }, 250);
    };
    listeners.add(listener);
    if (listeners.size === 1) start();
    return () => {
      clearTimeout(waiting);
      listeners.delete(listener);
      if (listeners.size === 0) stop();
    };
  }, []);
}

function combined({ kinds: some }: Change, { kinds: others }: Change): Change {
  return { kinds: some === undefined || others === undefined ? undefined : [...some, ...others] };
}

function notifyListeners(kinds?: readonly string[]): void {
  for (const listener of listeners) listener({ kinds });
}

function start(): void {
  document.addEventListener('visibilitychange', onVisibility);
  if (document.hidden) return;
  source = new EventSource('/api/v1/events');
  source.onopen = () => {
    // Covers changes between the page's own request and this connection.
    notifyListeners();
    clearInterval(poll);
    poll = undefined;
  };
  source.addEventListener('change', ({ data }: MessageEvent<string>) => {
    notifyListeners((JSON.parse(data) as { kinds: readonly string[] }).kinds);
  });
  source.onerror = () => {
    if (poll !== undefined) return;
    // The session may have ended; the pages notice when they reload.
    notifyListeners();
    poll = setInterval(onPoll, pollEvery);
  };
}

/** Browsers do not reconnect after an error response, so this does. */
function onPoll(): void {
  notifyListeners();
  if (source?.readyState !== EventSource.CLOSED) return;
  const before = poll;
  poll = undefined;
  start();
  poll = before;
}

function stop(): void {
  document.removeEventListener('visibilitychange', onVisibility);
  disconnect();
}

function disconnect(): void {
  source?.close();
  source = undefined;
  clearInterval(poll);
  poll = undefined;
}

/** A hidden tab closes its connection, because browsers allow only six per server and people keep many tabs open. */
function onVisibility(): void {
  disconnect();
  if (document.hidden || listeners.size === 0) return;
  document.removeEventListener('visibilitychange', onVisibility);
  start();
  notifyListeners();
}
