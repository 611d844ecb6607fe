/**
 * Work that a flood of connections can demand at once, done a little at a time: between two turns of the event loop
 * everyone else is served.
 */

/** In one turn of the event loop. The dearest, a TLS handshake, takes about a millisecond. */
const perTurn = 8;

/** In the order in which it came; the same work waits once. */
const waiting = new Set<() => void>();

/** Does the work soon, after what came before it. */
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
