/**
 * Which node of a shared database leads: it runs the jobs that one node runs for all. The leader has a lease that it
 * keeps extending, and a number, the fence, that no earlier leader has. Its transactions begin with a look at both, so
 * a node that hangs and wakes up after another has taken over writes nothing any more.
 */
import { second } from '../../base/duration.ts';
import type { Database } from '../../db/database.ts';
import {
  extendJobLease,
  holdsJobLease,
  type JobLease,
  readJobLease,
  takeJobLease,
} from '../../db/tables/nodes/job-leases.ts';
import type { DatabaseContext } from '../contexts.ts';
import type { DatabaseClock } from './database-clock.ts';

/** A leader that does not extend its lease for this long is no longer one. */
export const leadershipDuration = 15 * second;

const job = 'leader';

/** What the leadership of a shared database takes. */
export type LeadershipContext = DatabaseContext & { readonly sharedClock: DatabaseClock };

/** The time of one node as leader, from its election until it loses or releases the lease. */
export type Term = JobLease;

/** A job of a node that no longer leads tried to write. Nothing was written. */
export class LeaseLostError extends Error {
  constructor() {
    super('another node runs the background jobs now');
    this.name = 'LeaseLostError';
  }
}

/**
 * Makes the node the leader if there is none, or if it was the leader before it restarted. Returns undefined while
 * another node leads. Throws StorageError.
 */
export async function takeLeadership(
  { db, sharedClock }: LeadershipContext,
  nodeId: string,
): Promise<Term | undefined> {
  const held = await readJobLease(db.reader, job);
  // An early look at the clock only makes the lease shorter.
  const now = await sharedClock.databaseNow();
  const order = {
    job,
    nodeId,
    now,
    expiresAt: now + leadershipDuration,
    // No lease is that long, unless the clock of the database was set back since.
    latest: now + 2 * leadershipDuration,
  };
  if (
    held !== undefined &&
    held.node_id !== nodeId &&
    held.expires_at > now &&
    held.expires_at <= order.latest
  )
    return undefined;
  return db.write((writer) => takeJobLease(writer, order));
}

/** Extends the lease of the leader. Returns whether it still leads. Throws StorageError. */
export async function extendLeadership({ db, sharedClock }: LeadershipContext, term: Term): Promise<boolean> {
  const now = await sharedClock.databaseNow();
  return db.write((writer) => extendJobLease(writer, term, now + leadershipDuration));
}

/** Ends the lease of the leader, so that another node can lead at once. Throws StorageError. */
export async function releaseLeadership({ db, sharedClock }: LeadershipContext, term: Term): Promise<void> {
  const now = await sharedClock.databaseNow();
  await db.write((writer) => extendJobLease(writer, term, now));
}

/** The id of the node that leads at `now`, the time of the database; undefined if none does. */
export async function leaderAt({ db }: DatabaseContext, now: number): Promise<string | undefined> {
  const held = await readJobLease(db.reader, job);
  return held !== undefined && held.expires_at > now ? held.node_id : undefined;
}

/**
 * The database as the jobs of this term see it: a transaction in which the node no longer leads calls `onLost` and
 * rejects with LeaseLostError, before anything is written.
 */
export function fencedBy(db: Database, term: Term, onLost: () => void): Database {
  const write: Database['write'] = (work) =>
    db.write(async (writer) => {
      if (await holdsJobLease(writer, term)) return work(writer);
      onLost();
      throw new LeaseLostError();
    });
  const append: Database['append'] = (events) =>
    write(async (writer) => {
      writer.events.push(...events);
    });
  return new Proxy(db, {
    get: (target, name) => {
      if (name === 'write') return write;
      if (name === 'append') return append;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
