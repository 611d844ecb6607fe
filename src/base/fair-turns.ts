/**
 * Spreads expensive work of many connections over turns of the event loop, so that other clients are served in between.
 */

/** Per turn of the event loop. The most expensive work, a TLS handshake, takes about a millisecond. */
const perTurn = 8;

/** In order of arrival; the same work is queued once. */
const waiting = new Set<() => void>();

/** Runs the work soon, after earlier work. */
export function doInFairTurn(work: () => void): void {
  if (waiting.size === 0) setImmediate(takeTurns);
  waiting.add(work);
}

function takeTurns(): void {
  let left = perTurn;
  for (const work of waiting) {
    if (left === 0) break;
    left -= 1;
    waiting.delete(work);
    work();
  }
  if (waiting.size > 0) setImmediate(takeTurns);
}
