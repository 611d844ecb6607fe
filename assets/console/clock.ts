/** The moment that all relative times on a page count from; it moves on every 30 seconds, for all together. */
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
  const moment = Date.now();
  for (const listener of listeners) listener(moment);
}
