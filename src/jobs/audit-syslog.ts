/** Audit events as syslog messages (RFC 5424), each with the event as JSON. */
import { second } from '../base/duration.ts';
import type { World } from '../base/world.ts';
import { jsonLine, type RecordedEvent } from '../domain/audit/audit-log.ts';
import type { AuditSink } from './audit-feed.ts';
import { openSyslog, type SyslogConnection, type SyslogTarget } from './syslog-connection.ts';

/** Facility "log audit" (RFC 5424 §6.2.1). */
const facility = 13;
const notice = 5;
const warning = 4;

/**
 * How long a connection must stay open after the last message before the messages count as delivered. Syslog has no
 * acknowledgments, so messages in flight when the collector closes the connection are sent again.
 */
const settling = second;

/** Time limit for one delivery. */
const timeLimit = 30 * second;

/** The largest payload of a datagram (65,535 bytes including the headers of IPv6 and UDP), rounded down. */
const largestDatagram = 65_000;

/** A message: its header, no structured data, and the event as JSON. */
export function syslogMessage(event: RecordedEvent, hostname: string): string {
  const severity = event.action.endsWith('.refuse') || event.action.endsWith('.fail') ? warning : notice;
  const at = new Date(event.at).toISOString();
  return `<${facility * 8 + severity}>1 ${at} ${hostname} vault - ${event.action} - ${jsonLine(event).trimEnd()}`;
}

/** The message, without the event's details if it would not fit into a datagram. */
function datagramOf(event: RecordedEvent, hostname: string): string {
  const message = syslogMessage(event, hostname);
  if (Buffer.byteLength(message) <= largestDatagram) return message;
  return syslogMessage({ ...event, detail: '{"omitted":"longer than a datagram"}' }, hostname);
}

/** Sends to the target; connects on the first event, and again after each failure. */
export function auditSyslog(world: World, target: SyslogTarget, hostname: string): AuditSink {
  let connection: SyslogConnection | undefined;
  const close = async () => {
    connection?.close();
    connection = undefined;
  };
  return {
    name: 'syslog',
    target: target.url,
    close,
    deliver: async (events, signal) => {
      const over = new AbortController();
      try {
        await Promise.race([send(events, signal, over.signal), timeout(signal, over.signal)]);
      } catch (error) {
        await close();
        throw error;
      } finally {
        over.abort();
      }
    },
  };

  async function send(
    events: readonly RecordedEvent[],
    signal: AbortSignal,
    over: AbortSignal,
  ): Promise<void> {
    if (connection?.isOpen() !== true) connection = await openSyslog(target, AbortSignal.any([signal, over]));
    const current = connection;
    const messageOf = current.isStream ? syslogMessage : datagramOf;
    await current.send(events.map((event) => messageOf(event, hostname)));
    if (!current.isStream) return;
    await world.sleep(settling, signal);
    if (signal.aborted || !current.isOpen()) throw new Error('the syslog collector closed the connection');
  }

  async function timeout(signal: AbortSignal, over: AbortSignal): Promise<never> {
    await world.sleep(timeLimit, AbortSignal.any([signal, over]));
    throw new Error(`the syslog collector accepted no messages for ${timeLimit / second} seconds`);
  }
}
