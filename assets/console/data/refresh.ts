/** Reloads what no event reports, while the page is visible. */
import { useEffect } from 'preact/hooks';

/** In milliseconds. */
const refreshEvery = 10_000;

export function useRefresh(reload: () => Promise<void>, isNeeded = true): void {
  useEffect(() => {
    if (!isNeeded) return;
    const timer = setInterval(() => document.visibilityState === 'visible' && void reload(), refreshEvery);
    return () => clearInterval(timer);
  }, [reload, isNeeded]);
}
