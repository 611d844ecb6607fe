/** What several nodes did under load at the same time, as one figure each. */
import type { ServerLoad } from './server-load.ts';

export type NodesLoad = {
  readonly perSecond: number;
  readonly requests: number;
  /** Processor time per request in µs: of the event loops, of all threads of the nodes, and of the database. */
  readonly loopEach: number;
  readonly each: number;
  readonly databaseEach: number;
  /** Transactions of the database that wrote, per second and per request. */
  readonly batchesPerSecond: number;
  readonly batchesEach: number;
  /** Bytes of the database's write-ahead log per request. */
  readonly loggedEach: number;
};

/** What the server of a database has done since it started. */
export type DatabaseWork = {
  /** On a clock without a zero. */
  readonly seconds: number;
  readonly processorMs: number;
  /** Transactions that wrote, in all of its databases. */
  readonly writes: number;
  /** Bytes of the write-ahead log. */
  readonly logged: number;
};

/** What it did between two readings. */
export function workSince(before: DatabaseWork, after: DatabaseWork): DatabaseWork {
  return {
    seconds: after.seconds - before.seconds,
    processorMs: after.processorMs - before.processorMs,
    writes: after.writes - before.writes,
    logged: after.logged - before.logged,
  };
}

const none: DatabaseWork = {
  seconds: Number.NaN,
  processorMs: Number.NaN,
  writes: Number.NaN,
  logged: Number.NaN,
};

/**
 * Sums requests; averages times over all requests, whichever node answered them. What concerns the database is NaN for
 * a vault without a server.
 */
export function together(loads: readonly ServerLoad[], work: DatabaseWork = none): NodesLoad {
  const sum = (value: (load: ServerLoad) => number) => loads.reduce((total, load) => total + value(load), 0);
  const requests = sum((load) => load.requests);
  return {
    perSecond: sum(({ perSecond }) => perSecond),
    requests,
    loopEach: sum(({ loopEach, requests }) => loopEach * requests) / requests,
    each: sum(({ each, requests }) => each * requests) / requests,
    databaseEach: (work.processorMs * 1000) / requests,
    batchesPerSecond: work.writes / work.seconds,
    batchesEach: work.writes / requests,
    loggedEach: work.logged / requests,
  };
}
