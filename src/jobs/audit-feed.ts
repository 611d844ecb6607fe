/**
 * Delivers audit events to an external collector, in order and at least once, and retries until it succeeds. Requests never
 * wait for a delivery.
 */
import { minute, second } from '../base/duration.ts';
import { type AuditEventRow, lastGivenId, listChainedEvents } from '../db/audit/audit-events.ts';
import { putSetting, readSetting } from '../db/tables/settings.ts';
import type { Vault } from '../domain/vault.ts';

/** A destination of audit events. */
export type AuditSink = {
  readonly name: 'file' | 'syslog';
  /** The path or URL, for log lines. */
  readonly target: string;
  /** Resolves when the events are safe at the destination. Rejects if that is uncertain; they are then delivered again. */
  readonly deliver: (events: readonly AuditEventRow[], signal: AbortSignal) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Events per delivery: one or two megabytes. */
const eventsAtOnce = 5000;

const pollInterval = second;
const longestWait = minute;

/**
 * Runs until `signal` is aborted. The database keeps the position, so events recorded while the server or the collector was
 * down are delivered later. A new feed starts with the next event.
 */
export async function runAuditFeed(vault: Vault, sink: AuditSink, signal: AbortSignal): Promise<void> {
  const { world, log } = vault;
  const { target } = sink;
  let failures = 0;
  while (!signal.aborted) {
    let wait: number = pollInterval;
    try {
      const delivered = await deliverNext(vault, sink, signal);
      if (failures > 0) log.info({ target, attempts: failures + 1 }, 'delivery of audit events resumed');
      failures = 0;
      if (delivered === eventsAtOnce) continue;
    } catch (error) {
      if (signal.aborted) break;
      if (failures === 0) log.warn({ err: error, target }, 'failed to deliver audit events; retrying');
      failures += 1;
      wait = Math.min(longestWait, second * 2 ** Math.min(failures, 10));
    }
    await world.sleep(wait, signal);
  }
  await sink.close();
}

async function deliverNext({ db, log }: Vault, sink: AuditSink, signal: AbortSignal): Promise<number> {
  const key = `audit-${sink.name}-cursor` as const;
  const known = await readSetting(db.reader, key);
  if (known === undefined) {
    const last = await lastGivenId(db.reader);
    await db.write((writer) => putSetting(writer, key, last));
    return 0;
  }
  const cursor = Number(known);
  const events = await listChainedEvents(db.reader, cursor, eventsAtOnce);
  const [first] = events;
  const last = events.at(-1);
  if (first === undefined || last === undefined) return 0;
  if (first.id > cursor + 1) {
    const { target } = sink;
    const fields = { target, from: cursor + 1, to: first.id - 1 };
    log.warn(fields, 'audit events pruned before delivery');
  }
  await sink.deliver(events, signal);
  await db.write((writer) => putSetting(writer, key, last.id));
  return events.length;
}
