/**
 * Audit log retention: removes the oldest events in short transactions, between which others can write. First an event
 * records up to where, so that the chain itself announces the gap.
 */

import { day } from '../../base/duration.ts';
import { requireIntegrity } from '../../base/integrity.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { listChainedEvents } from '../../db/audit/audit-events.ts';
import { lastToPrune, pruneAuditEvents, readPrunedThrough } from '../../db/audit/audit-pruning.ts';
import { listTaggedRows } from '../../db/audit/row-list.ts';
import { newestRecord } from '../../db/audit/row-records.ts';
import type { LoggedContext, TimedContext } from '../contexts.ts';
import { record, system } from './audit.ts';
import { ChainWalk } from './audit-verification.ts';

/** Events removed per transaction: a few milliseconds. */
const eventsAtOnce = 500;

/** Rows recorded again per transaction. */
const rowsAtOnce = 100;

/** Milliseconds between transactions, so that downloads can run. */
const pause = 50;

/** The shortest span worth pruning, so that the log records pruning at most once a day. */
const slack = day;

/** Removes events older than `keepFor` milliseconds, once one is a day older. Returns the number of removed events. */
export async function pruneAuditLog(
  vault: LoggedContext,
  keepFor: number,
  signal?: AbortSignal,
): Promise<number> {
  const { db, world, log } = vault;
  const now = world.now();
  const due = await lastToPrune(db.reader, world, { before: now - keepFor - slack, now });
  if (due === undefined) return 0;
  const last = await lastToPrune(db.reader, world, { before: now - keepFor, now });
  // An event without a link is not from this vault, and the rest could not be verified against it.
  if (last === undefined || last.link.length === 0) return 0;
  const faults = await faultsUpTo(vault, last.id);
  if (faults > 0) log.error({ faults, through: last.id }, 'pruning audit events that fail verification');
  await recordRowsAgain(vault, last.id);
  await db.write(async (writer) => {
    const detail = {
      through: last.id,
      hash: last.link.toString('hex'),
      older_than: formatTimestamp(now - keepFor),
      ...(faults > 0 && { faults }),
    };
    record(writer, { actor: system, action: 'audit.prune', resource: 'audit-log', detail }, now);
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

/**
 * Records rows again whose records are about to be pruned: a row without a record is rejected. Repeats the newest
 * record, not the content of the row.
 */
async function recordRowsAgain({ db, world }: TimedContext, through: number): Promise<void> {
  const integrity = requireIntegrity(db);
  const rows = await listTaggedRows(db.reader, integrity);
  for (let from = 0; from < rows.length; from += rowsAtOnce) {
    await db.write(async (writer) => {
      for (const { resource } of rows.slice(from, from + rowsAtOnce)) {
        const known = await newestRecord(writer, integrity, resource);
        if (known === undefined || known.id > through) continue;
        writer.rows.set(resource, known.tag);
        record(writer, { actor: system, action: 'integrity.row', resource }, world.now());
      }
    });
    await world.turn();
  }
}

/** Counts faults in the events about to be pruned: an attacker may have backdated or modified events. */
async function faultsUpTo({ db, world }: TimedContext, last: number): Promise<number> {
  const walk = new ChainWalk(await readPrunedThrough(db.reader), [], requireIntegrity(db));
  for (;;) {
    const events = await listChainedEvents(db.reader, walk.end.id, eventsAtOnce);
    for (const event of events) if (event.id <= last) walk.step(event);
    if (events.length < eventsAtOnce || (events.at(-1)?.id ?? last) >= last) return walk.faultCount;
    await world.turn();
  }
}
