/**
 * How long the audit log is kept: what is older goes from its beginning, in short transactions between which others write. First
 * an event says up to where, so that what is missing was announced by the chain itself.
 */
import { day } from '../base/duration.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import { lastToPrune, pruneAuditEvents } from '../db/audit-pruning.ts';
import { record, system } from './audit.ts';
import type { Vault } from './vault.ts';

/** Events removed in one transaction: a few milliseconds. */
const eventsAtOnce = 500;

/** Between two transactions, so that downloads have their turn. */
const pause = 50;

/** Nothing is done for less than this, so that the log says once a day at most that it was pruned. */
const slack = day;

/** Removes what is older than `keepFor` milliseconds, once some of it is a day older. Returns how many events went. */
export async function pruneAuditLog(
  { db, world }: Vault,
  keepFor: number,
  signal?: AbortSignal,
): Promise<number> {
  const now = world.now();
  if ((await lastToPrune(db.reader, { before: now - keepFor - slack, now })) === undefined) return 0;
  const last = await lastToPrune(db.reader, { before: now - keepFor, now });
  // Without a link it was written by an older vault that still runs; the next event chains it.
  if (last === undefined || last.link.length === 0) return 0;
  await db.write((writer) => {
    const detail = {
      through: last.id,
      hash: last.link.toString('hex'),
      older_than: formatTimestamp(now - keepFor),
    };
    return record(writer, { actor: system, action: 'audit.prune', resource: 'audit-log', detail }, now);
  });
  let removed = 0;
  while (signal?.aborted !== true) {
    const some = await db.write((writer) => pruneAuditEvents(writer, last.id, eventsAtOnce));
    removed += some;
    if (some < eventsAtOnce) break;
    await world.sleep(pause, signal);
  }
  return removed;
}
