/**
 * Whether a database server is working for this process. Clocks that jump wait until it is not, because where the
 * database is a file, no time passes while it works, either.
 */
import pg from 'pg';
import { testedEngine } from '../database/tested-engine.ts';

let busy = 0;

if (testedEngine === 'postgres') {
  for (const name of ['connect', 'query'] as const) {
    const prototype = pg.Client.prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
    const original = prototype[name] as (...args: unknown[]) => unknown;
    prototype[name] = function counted(this: unknown, ...args) {
      const result = original.apply(this, args);
      if (!(result instanceof Promise)) return result;
      busy += 1;
      const done = () => {
        busy -= 1;
      };
      result.then(done, done);
      return result;
    };
  }
}

/** Whether an answer of a server is waited for. */
export function isServerBusy(): boolean {
  return busy > 0;
}

/** Resolves after a turn of the event loop in which nobody waited for a server. */
export async function quietTurn(turn: () => Promise<void>): Promise<void> {
  do await turn();
  while (isServerBusy());
}
