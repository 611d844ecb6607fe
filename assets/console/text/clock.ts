/** The current time for all relative times on a page, updated for all of them at once every 30 seconds. */
import { useEffect, useState } from 'preact/hooks';

const listeners = new Set<(now: number) => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Milliseconds since 1970. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    listeners.add(setNow);
    if (listeners.size === 1) timer = setInterval(tick, 30_000);
    return () => {
      listeners.delete(setNow);
      if (listeners.size === 0) clearInterval(timer);
    };
  }, []);
  return now;
}

function tick(): void {
  const now = Date.now();
  for (const listener of listeners) listener(now);
}
