/**
 * Lists take turns: a page costs milliseconds of the event loop for each portion, so that many pages at the same time
 * would keep other requests waiting between two portions of each.
 */

import { doInFairTurn } from '../../base/fair-turns.ts';
import { Problem } from '../../base/problem.ts';

/** Pages that are read at a time. */
const maxPages = 2;

let running = 0;

/** At most one of each caller, so that a caller with many requests delays others by one page. */
const waiting: (() => void)[] = [];

/** The end of the last page of each caller. */
const latest = new Map<string, Promise<void>>();

/** Runs `work` when it is the caller's turn, unless the client is gone by then. */
export async function inListTurn<T>(caller: string, gone: AbortSignal, work: () => Promise<T>): Promise<T> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const before = latest.get(caller);
  latest.set(caller, over);
  await before;
  if (running < maxPages) running += 1;
  else await new Promise<void>((begin) => waiting.push(begin));
  try {
    if (gone.aborted) throw new Problem('unavailable');
    return await work();
  } finally {
    if (latest.get(caller) === over) latest.delete(caller);
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else doInFairTurn(next);
    doInFairTurn(resolve);
  }
}
