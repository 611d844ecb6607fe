/**
 * Notifies when endpoints become unhealthy, and when they are current again: one notice for all changes of a check, and
 * none for a state that was notified before.
 */
import { formatTimestampOrNull } from '../../base/timestamp.ts';
import type { UnhealthyState } from '../../db/schema/schema-endpoints.ts';
import { pageEndpointFacts, pageEndpoints, setNotifiedEndpointState } from '../../db/tables/endpoints.ts';
import { listChannels } from '../../db/tables/notifications/notification-channels.ts';
import type { TimedContext } from '../contexts.ts';
import { addressText } from '../endpoints/endpoint-inputs.ts';
import { type EndpointFacts, endpointState } from '../endpoints/endpoint-state.ts';
import { type Endpoint, reasonFor, withState } from '../endpoints/endpoints.ts';
import { type EndpointChange, type EndpointChanges, endpointPlace } from './notification-endpoint-text.ts';
import { isForChannel, notifyAbout } from './notification-queue.ts';

/** Rows per scan step, a few milliseconds of work before the event loop runs. */
const scannedAtOnce = 500;

/** Changes per check; the next check notifies the rest. */
const changesPerCheck = 500;

/** Changes that a notice lists. */
const maxListed = 100;

/** The last scanned id; 0 to start from the beginning. */
export type EndpointCursor = { after: number };

/**
 * Notifies of the endpoints whose state is not the one that was notified last. Scans at most `most` rows after
 * `cursor`, which it advances; at the end of the table the cursor returns to 0. Without a channel for these events it
 * does nothing, so that a new channel learns of all that need attention. Returns the number of changes.
 */
export async function notifyEndpoints(
  vault: TimedContext,
  cursor: EndpointCursor,
  most: number,
): Promise<number> {
  const { db, world } = vault;
  const channels = await listChannels(db.reader);
  if (!channels.some((channel) => isForChannel(channel, 'endpoint.unhealthy'))) return 0;
  const changed: number[] = [];
  let after = cursor.after;
  for (let scanned = 0; scanned < most; scanned += scannedAtOnce) {
    const rows = await pageEndpointFacts(db.reader, after, scannedAtOnce);
    const now = world.now();
    const found = rows.filter((row) => noticeFor(row, now) !== row.notified_state);
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
  const count = changed.length === 0 ? 0 : await notifyChanged(vault, changed);
  // Only now, so that the next check repeats what failed.
  cursor.after = after;
  return count;
}

/** What to notify about an endpoint: null if it is current, and what was notified last if nothing is known. */
function noticeFor(
  row: EndpointFacts & { readonly notified_state: UnhealthyState | null },
  now: number,
): UnhealthyState | null {
  const state = endpointState(row, now);
  if (state === 'unchecked') return row.notified_state;
  return state === 'current' ? null : state;
}

function notifyChanged({ db, world }: TimedContext, ids: readonly number[]): Promise<number> {
  return db.write(async (writer) => {
    const now = world.now();
    // Another process may have notified meanwhile, or a check may have found something else.
    const rows = await pageEndpoints(writer, { ids, after: 0, limit: ids.length });
    const changes = rows.flatMap((row): EndpointChange[] => {
      const next = noticeFor(row, now);
      return next === row.notified_state ? [] : [changeOf(withState(row, now), next)];
    });
    for (const [state, its] of Map.groupBy(changes, (change) => change.state)) {
      const notified = state === 'current' ? null : state;
      await setNotifiedEndpointState(
        writer,
        its.map(({ id }) => id),
        notified,
      );
    }
    const [well, unwell] = [
      changes.filter(({ state }) => state === 'current'),
      changes.filter(({ state }) => state !== 'current'),
    ];
    if (unwell.length > 0) await notifyAbout(world, writer, 'endpoint.unhealthy', unwell, composed);
    if (well.length > 0) await notifyAbout(world, writer, 'endpoint.recovered', well, composed);
    return changes.length;
  });
}

function changeOf(row: Endpoint, next: UnhealthyState | null): EndpointChange {
  const { id, certificate, server_name, fingerprint_sha256, notified_state: previous } = row;
  return {
    ...{ id, address: addressText(row), server_name, certificate },
    state: next ?? 'current',
    previous_state: previous ?? 'current',
    reason: reasonFor(row),
    fingerprint_sha256,
    not_after: formatTimestampOrNull(row.not_after),
    checked_at: formatTimestampOrNull(row.checked_at),
  };
}

function composed(changes: readonly EndpointChange[]) {
  const counts = Object.fromEntries(
    [...Map.groupBy(changes, ({ state }) => state)].map(([state, its]) => [state, its.length]),
  );
  const endpoints = changes.slice(0, maxListed);
  const [first] = changes;
  const about =
    changes.length === 1 && first !== undefined
      ? `${endpointPlace(first)}${first.server_name === '' ? '' : ` (${first.server_name})`}`
      : `${changes.length} endpoints`;
  const data: EndpointChanges = { counts, endpoints };
  return { about, data };
}
