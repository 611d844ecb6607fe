/** Waiting for what other processes do. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long anything may take on a machine with ten times the usual work, in milliseconds. */
export const patience = 60_000;

/**
 * Calls `look` repeatedly until it returns a value that is neither undefined nor false, which is the result. Fails
 * after `within` milliseconds; what `what` names, or returns, is in the message.
 */
export async function eventually<T>(
  what: string | (() => string),
  look: () => T | undefined | false | Promise<T | undefined | false>,
  within = patience,
): Promise<T> {
  const deadline = Date.now() + within;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    const name = typeof what === 'string' ? what : what();
    assert(Date.now() < deadline, `${name}: not within ${within} ms`);
    await sleep(20);
  }
}
