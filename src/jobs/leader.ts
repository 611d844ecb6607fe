/**
 * Lets one node of a shared database run the jobs that one node runs for all. Each node tries to become the leader once
 * a second; the leader runs the jobs until it stops, or until another node may have taken over.
 */
import { second } from '../base/duration.ts';
import type { LogContext, WorldContext } from '../domain/contexts.ts';
import type { Heartbeat } from '../domain/health/heartbeat.ts';
import {
  extendLeadership,
  fencedBy,
  type LeadershipContext,
  leadershipDuration,
  releaseLeadership,
  type Term,
  takeLeadership,
} from '../domain/nodes/leadership.ts';

type LeaderContext = LeadershipContext & WorldContext & LogContext & { readonly renewalHeartbeat: Heartbeat };

/** Starts the jobs of the leader; they write to this database, and end when the signal is aborted. */
export type BeginJobs = (db: LeaderContext['db'], signal: AbortSignal) => readonly Promise<void>[];

/** How soon a node notices that there is no leader, and how soon it retries what failed. */
const pollInterval = second;

const extendEvery = 5 * second;

/** Without an extension for this long, the jobs stop: a little before the lease expires. */
const doubtAfter = leadershipDuration - second;

/**
 * Runs until `signal` is aborted and the jobs have ended. Logs errors and retries. The heartbeat of the renewal engine
 * of a node that does not lead tells that another one does.
 */
export async function runLeader(
  vault: LeaderContext,
  nodeId: string,
  begin: BeginJobs,
  signal: AbortSignal,
): Promise<void> {
  const { world, log, renewalHeartbeat } = vault;
  let hasFailed = false;
  const elected = async (): Promise<Term | undefined> => {
    try {
      const term = await takeLeadership(vault, nodeId);
      if (term === undefined) renewalHeartbeat.beat();
      if (hasFailed) log.info({}, 'query of the leading node succeeded again');
      hasFailed = false;
      return term;
    } catch (error) {
      // Log the first failure only: the database may be away for hours.
      if (!hasFailed) log.error({ err: error }, 'failed to query which node leads; retrying');
      hasFailed = true;
      return undefined;
    }
  };
  while (!signal.aborted) {
    const term = await elected();
    if (term !== undefined) await lead(vault, term, begin, signal);
    await world.sleep(pollInterval, signal);
  }
}

/** Runs the jobs while the lease is extended. Rejects if a job does. */
async function lead(vault: LeaderContext, term: Term, begin: BeginJobs, signal: AbortSignal): Promise<void> {
  const { db, log } = vault;
  const { fence } = term;
  const lost = new AbortController();
  const lose = (reason: string) => {
    if (lost.signal.aborted) return;
    log.warn({ fence, reason }, 'stopping the background jobs of this node');
    lost.abort();
  };
  const over = new AbortController();
  log.info({ fence }, 'node elected to run background jobs');
  const extending = keepExtending(vault, term, lose, over.signal);
  try {
    const fenced = fencedBy(db, term, () => lose('another node leads'));
    await Promise.all(begin(fenced, AbortSignal.any([signal, lost.signal])));
  } finally {
    over.abort();
    await extending;
  }
  if (!lost.signal.aborted) await release(vault, term);
}

/** Extends the lease until `signal` is aborted, and calls `lose` if it is lost, or may have expired meanwhile. */
async function keepExtending(
  vault: LeaderContext,
  term: Term,
  lose: (reason: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { world, log } = vault;
  const isOver = () => signal.aborted;
  // A timer of its own: an extension can wait for the database longer than the lease lasts.
  const startTimer = () => {
    const extended = new AbortController();
    const either = AbortSignal.any([signal, extended.signal]);
    void world.sleep(doubtAfter, either).then(() => {
      if (!either.aborted) lose('the lease was not extended in time');
    });
    return extended;
  };
  let timer = startTimer();
  let wait: number = extendEvery;
  while (!isOver()) {
    await world.sleep(wait, signal);
    if (isOver()) return;
    const next = startTimer();
    try {
      if (!(await extendLeadership(vault, term))) return lose('another node leads');
      timer.abort();
      timer = next;
      wait = extendEvery;
    } catch (error) {
      next.abort();
      log.warn({ err: error }, 'failed to extend the lease of the background jobs; retrying');
      wait = pollInterval;
    }
  }
}

/** Lets another node lead at once. After an error it leads when the lease has expired. */
async function release(vault: LeaderContext, term: Term): Promise<void> {
  try {
    await releaseLeadership(vault, term);
  } catch (error) {
    vault.log.warn({ err: error }, 'failed to release the lease of the background jobs');
  }
}
