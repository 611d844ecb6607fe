/**
 * Delivers audit events to an external collector, in order and at least once, and retries until it succeeds. Requests
 * never wait for a delivery.
 */
import { minute, second } from '../base/duration.ts';
import { auditCursor, type Collector, eventsAfter, moveAuditCursor } from '../domain/audit/audit-cursor.ts';
import { lastEventId, type RecordedEvent } from '../domain/audit/audit-log.ts';
import type { LoggedContext } from '../domain/contexts.ts';

/** A destination of audit events. */
export type AuditSink = {
  readonly name: Collector;
  /** The path or URL, for log lines. */
  readonly target: string;
  /**
   * Resolves when the events are safe at the destination. Rejects if that is uncertain; they are then delivered again.
   */
  readonly deliver: (events: readonly RecordedEvent[], signal: AbortSignal) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Events per delivery: a few milliseconds of reading and encoding. */
const eventsAtOnce = 500;

const pollInterval = second;
const maxWait = minute;

/**
 * Runs until `signal` is aborted. The database keeps the position, so events recorded while the server or the collector
 * was down are delivered later. A new feed starts with the next event.
 */
export async function runAuditFeed(
  vault: LoggedContext,
  sink: AuditSink,
  signal: AbortSignal,
): Promise<void> {
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
      wait = Math.min(maxWait, second * 2 ** Math.min(failures, 10));
    }
    await world.sleep(wait, signal);
  }
  await sink.close();
}

async function deliverNext(context: LoggedContext, sink: AuditSink, signal: AbortSignal): Promise<number> {
  const cursor = await auditCursor(context, sink.name);
  if (cursor === undefined) {
    await moveAuditCursor(context, sink.name, await lastEventId(context));
    return 0;
  }
  const events = await eventsAfter(context, cursor, eventsAtOnce);
  const [first] = events;
  const last = events.at(-1);
  // A node that wakes up after another has taken over must not deliver beside it.
  if (first === undefined || last === undefined || signal.aborted) return 0;
  if (first.id > cursor + 1) {
    const { target } = sink;
    const fields = { target, from: cursor + 1, to: first.id - 1 };
    context.log.warn(fields, 'audit events pruned before delivery');
  }
  await sink.deliver(events, signal);
  await moveAuditCursor(context, sink.name, last.id);
  return events.length;
}
