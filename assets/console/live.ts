/**
 * What changes on the server shows by itself: server-sent events say that something changed, and the pages ask anew.
 * Where events do not come through, a bell every ten seconds does the same.
 */
import { useEffect, useRef } from 'preact/hooks';

/** What the vault says has changed (src/domain/changes/changes.ts); nothing where it may have been anything. */
export type Change = { readonly kinds: readonly string[] | undefined };

const pollEvery = 10_000;
const listeners = new Set<(change: Change) => void>();
let source: EventSource | undefined;
let poll: ReturnType<typeof setInterval> | undefined;

/** Calls back after every change; not more often than four times a second, and not while the page is hidden. */
export function useLive(onChange: (change: Change) => void): void {
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => {
    let waiting: ReturnType<typeof setTimeout> | undefined;
    let collected: Change = { kinds: [] };
    const listener = (change: Change) => {
      collected = bothOf(collected, change);
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

function bothOf({ kinds: some }: Change, { kinds: others }: Change): Change {
  return { kinds: some === undefined || others === undefined ? undefined : [...some, ...others] };
}

function ring(kinds?: readonly string[]): void {
  for (const listener of listeners) listener({ kinds });
}

function start(): void {
  document.addEventListener('visibilitychange', onVisibility);
  if (document.hidden) return;
  source = new EventSource('/api/v1/events');
  source.onopen = () => {
    // What changed between a page's own question and this moment would stay unseen.
    ring();
    clearInterval(poll);
    poll = undefined;
  };
  source.addEventListener('change', ({ data }: MessageEvent<string>) => {
    ring((JSON.parse(data) as { kinds: readonly string[] }).kinds);
  });
  source.onerror = () => {
    if (poll !== undefined) return;
    // The session may be what ended; the pages find out when they ask.
    ring();
    poll = setInterval(onPoll, pollEvery);
  };
}

/** A browser does not try again after a refusal, so that is done here. */
function onPoll(): void {
  ring();
  if (source?.readyState !== EventSource.CLOSED) return;
  const before = poll;
  poll = undefined;
  start();
  poll = before;
}

function stop(): void {
  document.removeEventListener('visibilitychange', onVisibility);
  hangUp();
}

function hangUp(): void {
  source?.close();
  source = undefined;
  clearInterval(poll);
  poll = undefined;
}

/** A hidden tab holds no connection: browsers allow six to one server, and people keep many tabs. */
function onVisibility(): void {
  hangUp();
  if (document.hidden || listeners.size === 0) return;
  document.removeEventListener('visibilitychange', onVisibility);
  start();
  ring();
}
