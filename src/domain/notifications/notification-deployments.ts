/**
 * Notifies when deployments become failing, outdated or silent, and when they are current again: one notice for all
 * changes of a check, and none for a state that was notified before.
 */
import { hour } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Writer } from '../../db/database.ts';
import type { NotifiedState } from '../../db/schema/schema-deployments.ts';
import {
  type DeploymentFacts,
  type ListedDeploymentRow,
  pageDeploymentFacts,
  pageDeployments,
  setNotifiedState,
} from '../../db/tables/deployments.ts';
import { listChannels } from '../../db/tables/notifications/notification-channels.ts';
import type { TimedContext } from '../contexts.ts';
import { failureOf, stateOf } from '../deployments/deployments.ts';
import { type DeploymentChange, type DeploymentChanges, placeOf } from './notification-deployment-text.ts';
import { isForChannel, notifyAbout } from './notification-queue.ts';

/** Rows per scan step, a few milliseconds of work before the event loop runs. */
const scannedAtOnce = 500;

/** Changes per check; the next check notifies the rest. */
export const changesPerCheck = 500;

/** Changes that a notice lists. */
const maxListed = 100;

/** A vault that was off took no reports, so it waits for them before it calls a deployment silent. */
export const patience = hour;

/** The last scanned id; 0 to start from the beginning. */
export type DeploymentCursor = { after: number };

export type DeploymentCheck = {
  readonly cursor: DeploymentCursor;
  /** When the vault started, UTC milliseconds. */
  readonly since: number;
  /** How many rows to scan. */
  readonly most: number;
};

/**
 * Notifies of the deployments whose state is not the one that was notified last. Scans at most `most` rows after
 * `cursor`, which it advances; at the end of the table the cursor returns to 0. Without a channel for these events it
 * does nothing, so that a new channel learns of all that need attention. Returns the number of changes.
 */
export async function notifyDeployments(
  vault: TimedContext,
  { cursor, since, most }: DeploymentCheck,
): Promise<number> {
  const { db, world } = vault;
  const channels = await listChannels(db.reader);
  if (!channels.some((channel) => isForChannel(channel, 'deployment.unhealthy'))) return 0;
  const changed: number[] = [];
  let after = cursor.after;
  for (let scanned = 0; scanned < most; scanned += scannedAtOnce) {
    const rows = await pageDeploymentFacts(db.reader, after, scannedAtOnce);
    const now = world.now();
    const found = rows.filter((row) => noticeFor(row, now, since) !== row.notified_state);
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
  const count = changed.length === 0 ? 0 : await notifyChanged(vault, changed, since);
  // Only now, so that the next check repeats what failed.
  cursor.after = after;
  return count;
}

/** What to notify about a deployment: null if it is current. */
function noticeFor(row: DeploymentFacts, now: number, since: number): NotifiedState | null {
  const state = stateOf(row, now);
  if (state === 'current') return null;
  const isEarly = state === 'silent' && now >= since && now - since < patience;
  return isEarly ? row.notified_state : state;
}

type Change = DeploymentChange & { readonly rowId: number };

function notifyChanged({ db, world }: TimedContext, ids: readonly number[], since: number): Promise<number> {
  return db.write(async (writer) => {
    const now = world.now();
    // Another process may have notified meanwhile, or a report may have come.
    const rows = await pageDeployments(writer, { ids, after: 0, limit: ids.length });
    const changes = rows.flatMap((row): Change[] => {
      const next = noticeFor(row, now, since);
      return next === row.notified_state ? [] : [changeOf(row, next)];
    });
    for (const [state, its] of Map.groupBy(changes, (change) => change.state)) {
      const notified = state === 'current' ? null : state;
      await setNotifiedState(
        writer,
        its.map(({ rowId }) => rowId),
        notified,
      );
    }
    const [well, unwell] = [
      changes.filter(({ state }) => state === 'current'),
      changes.filter(({ state }) => state !== 'current'),
    ];
    await notifyAll(writer, 'deployment.unhealthy', unwell);
    await notifyAll(writer, 'deployment.recovered', well);
    return changes.length;
  });

  async function notifyAll(
    writer: Writer,
    event: 'deployment.unhealthy' | 'deployment.recovered',
    changes: readonly Change[],
  ): Promise<void> {
    if (changes.length > 0) await notifyAbout(world, writer, event, changes, composed);
  }
}

function changeOf(row: ListedDeploymentRow, next: NotifiedState | null): Change {
  const { id, name, certificate, host, job, version, current_version, notified_state } = row;
  return {
    ...{ rowId: id, certificate, id: name, host, job },
    state: next ?? 'current',
    previous_state: notified_state ?? 'current',
    ...{ version, current_version },
    reason: next === 'failing' ? (failureOf(row) ?? null) : null,
    last_seen_at: formatTimestamp(row.last_seen_at),
  };
}

function composed(changes: readonly Change[]) {
  const counts = Object.fromEntries(
    [...Map.groupBy(changes, ({ state }) => state)].map(([state, its]) => [state, its.length]),
  );
  const deployments = changes.slice(0, maxListed).map(({ rowId: _, ...change }) => change);
  const [first] = changes;
  const about =
    changes.length === 1 && first !== undefined
      ? `${placeOf(first)} (${first.id})`
      : `${changes.length} deployments`;
  const data: DeploymentChanges = { counts, deployments };
  return { about, data };
}
