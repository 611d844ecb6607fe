/** Reloads what no event reports, while the page is visible. */
import { useEffect } from 'preact/hooks';

/** `every` in milliseconds. */
export function useRefresh(reload: () => Promise<void>, isNeeded = true, every = 10_000): void {
  useEffect(() => {
    if (!isNeeded) return;
    const timer = setInterval(() => document.visibilityState === 'visible' && void reload(), every);
    return () => clearInterval(timer);
  }, [reload, isNeeded, every]);
}
