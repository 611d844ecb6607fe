/**
 * Notifies when watched rows become unhealthy, and when they are current again: one notice for all changes of a check,
 * and none for a state that was notified before.
 */
import type { Reader, Writer } from '../../db/database.ts';
import { listChannels } from '../../db/tables/notifications/notification-channels.ts';
import type { TimedContext } from '../contexts.ts';
import { isForChannel, notifyAbout } from './notification-queue.ts';

/** Rows per scan step, a few milliseconds of work before the event loop runs. */
const scannedAtOnce = 500;

/** Changes per check; the next check notifies the rest. */
export const changesPerCheck = 500;

/** Changes that a notice lists. */
const maxListed = 100;

/** The last scanned id; 0 to start from the beginning. */
export type ScanCursor = { after: number };

type Row<State> = { readonly id: number; readonly notified_state: State | null };

type Change = { readonly certificate: string | null; readonly state: string };

/** Rows of one table whose state is notified: deployments, or endpoints. */
export type Watched<
  State extends string,
  Facts extends Row<State>,
  Listed extends Facts,
  Told extends Change & { readonly state: State | 'current' },
> = {
  readonly kind: 'deployment' | 'endpoint';
  /** At most `limit` rows after the id, in the order of their ids. */
  readonly scan: (reader: Reader, after: number, limit: number) => Promise<readonly Facts[]>;
  readonly find: (writer: Writer, ids: readonly number[]) => Promise<readonly Listed[]>;
  /** What to notify about a row: null if it is current, and what was notified last to wait. */
  readonly noticeFor: (row: Facts, now: number) => State | null;
  /** The change to `next`, as receivers see it. */
  readonly changeOf: (row: Listed, next: State | null, now: number) => Told;
  /** What the notice is about if it has only this change. */
  readonly aboutOf: (change: Told) => string;
  readonly store: (writer: Writer, ids: readonly number[], state: State | null) => Promise<void>;
};

/**
 * Notifies of the rows whose state is not the one that was notified last. Scans at most `most` rows after `cursor`,
 * which it advances; at the end of the table the cursor returns to 0. Without a channel for these events it does
 * nothing, so that a new channel learns of all that need attention. Returns the number of changes.
 */
export async function notifyChanges<
  State extends string,
  Facts extends Row<State>,
  Listed extends Facts,
  Told extends Change & { readonly state: State | 'current' },
>(
  vault: TimedContext,
  watched: Watched<State, Facts, Listed, Told>,
  cursor: ScanCursor,
  most: number,
): Promise<number> {
  const { db, world } = vault;
  const channels = await listChannels(db.reader);
  if (!channels.some((channel) => isForChannel(channel, `${watched.kind}.unhealthy`))) return 0;
  const changed: number[] = [];
  let after = cursor.after;
  for (let scanned = 0; scanned < most; scanned += scannedAtOnce) {
    const rows = await watched.scan(db.reader, after, scannedAtOnce);
    const now = world.now();
    const found = rows.filter((row) => watched.noticeFor(row, now) !== row.notified_state);
    const fitting = found.slice(0, changesPerCheck - changed.length);
    changed.push(...fitting.map(({ id }) => id));
    if (fitting.length < found.length || changed.length === changesPerCheck) {
      after = changed.at(-1) ?? after;
      break;
    }
    after = rows.length < scannedAtOnce ? 0 : (rows.at(-1)?.id ?? 0);
    if (after === 0) break;
    await world.turn();
  }
  const count = changed.length === 0 ? 0 : await notifyChanged(vault, watched, changed);
  // Only now, so that the next check repeats what failed.
  cursor.after = after;
  return count;
}

function notifyChanged<
  State extends string,
  Facts extends Row<State>,
  Listed extends Facts,
  Told extends Change & { readonly state: State | 'current' },
>(
  { db, world }: TimedContext,
  watched: Watched<State, Facts, Listed, Told>,
  ids: readonly number[],
): Promise<number> {
  const { kind, aboutOf } = watched;
  const compose = (changes: readonly Told[]) => {
    const [first] = changes;
    const isOne = changes.length === 1 && first !== undefined;
    const states = Map.groupBy(changes, ({ state }) => state);
    const counts = Object.fromEntries([...states].map(([state, its]) => [state, its.length]));
    return {
      about: isOne ? aboutOf(first) : `${changes.length} ${kind}s`,
      data: { counts, [`${kind}s`]: changes.slice(0, maxListed) },
    };
  };
  return db.write(async (writer) => {
    const now = world.now();
    // Another process may have notified meanwhile, or there may be news.
    const rows = (await watched.find(writer, ids))
      .map((row) => ({ row, next: watched.noticeFor(row, now) }))
      .filter(({ row, next }) => next !== row.notified_state);
    for (const [state, its] of Map.groupBy(rows, ({ next }) => next)) {
      await watched.store(
        writer,
        its.map(({ row }) => row.id),
        state,
      );
    }
    const changes = rows.map(({ row, next }) => watched.changeOf(row, next, now));
    const [well, unwell] = [
      changes.filter(({ state }) => state === 'current'),
      changes.filter(({ state }) => state !== 'current'),
    ];
    if (unwell.length > 0) await notifyAbout(world, writer, `${kind}.unhealthy`, unwell, compose);
    if (well.length > 0) await notifyAbout(world, writer, `${kind}.recovered`, well, compose);
    return changes.length;
  });
}
