/**
 * Audit events on their way to whoever collects them: read from the log behind the requests, delivered in order and at least
 * once, and tried again for as long as it takes. No request waits for it.
 */
import { minute, second } from '../base/duration.ts';
import { auditCursor, type Collector, eventsAfter, moveAuditCursor } from '../domain/audit/audit-cursor.ts';
import { lastEventId, type RecordedEvent } from '../domain/audit/audit-log.ts';
import type { LoggedContext } from '../domain/contexts.ts';

/** Where events go. */
export type AuditSink = {
  readonly name: Collector;
  /** As the log calls it. */
  readonly target: string;
  /** Resolves when the events will not be lost there; rejects where nobody can say, and they are delivered again. */
  readonly deliver: (events: readonly RecordedEvent[], signal: AbortSignal) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** How many events are delivered together: a megabyte or two. */
const eventsAtOnce = 5000;

const lookAgainAfter = second;
const longestWait = minute;

/**
 * Runs until `signal` is aborted. Where it stands is kept in the database, so that events of a time without a server, or with
 * the collector away, come later. A new feed begins with the next event.
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
    let wait: number = lookAgainAfter;
    try {
      const delivered = await deliverNext(vault, sink, signal);
      if (failures > 0) log.info({ target, attempts: failures + 1 }, 'audit events are delivered again');
      failures = 0;
      if (delivered === eventsAtOnce) continue;
    } catch (error) {
      if (signal.aborted) break;
      if (failures === 0)
        log.warn({ err: error, target }, 'audit events cannot be delivered; trying until they can');
      failures += 1;
      wait = Math.min(longestWait, second * 2 ** Math.min(failures, 10));
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
  if (first === undefined || last === undefined) return 0;
  if (first.id > cursor + 1) {
    const { target } = sink;
    const fields = { target, from: cursor + 1, to: first.id - 1 };
    context.log.warn(fields, 'audit events were pruned before they could be delivered');
  }
  await sink.deliver(events, signal);
  await moveAuditCursor(context, sink.name, last.id);
  return events.length;
}
