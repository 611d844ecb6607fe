/** Notification channels and their log as administrators see them, without credentials. */
import { parseJson, parseJsonOr } from '../../base/json.ts';
import { hasAnyLabel } from '../../base/object-label.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { type ChannelRow, listChannels } from '../../db/tables/notifications/notification-channels.ts';
import {
  countOpen,
  type DeliveryPage,
  listDeliveries,
  type NamedDeliveryRow,
} from '../../db/tables/notifications/notification-deliveries.ts';
import type { DatabaseContext } from '../contexts.ts';

export type ChannelView = {
  name: string;
  type: string;
  /** The destination: the origin of a URL, email addresses, or a program. */
  target: string;
  events: string[];
  /** Patterns of certificate names; empty for all. */
  certificates: string[];
  /** Labels of certificates, of which any must fit; empty for all. */
  certificate_labels: string[];
  /** Its own labels. */
  labels: string[];
  /** `HH:MM` in UTC. */
  digest_at: string | null;
  digest_days: number;
  created_at: string;
  disabled_at: string | null;
  disabled_reason: string | null;
  /** The number of pending deliveries. */
  waiting: number;
  /** The delivery that was attempted last. */
  last_delivery: { at: string; event: string; status: string; error: string | null } | null;
};

export type DeliveryView = {
  id: number;
  /** The id that receivers see. */
  message_id: string;
  channel: string;
  event: string;
  /** The name of the certificate, key or private CA. */
  about: string | null;
  status: 'queued' | 'sending' | 'delivered' | 'failed';
  attempts: number;
  queued_at: string;
  last_attempt_at: string | null;
  /** null after the last attempt. */
  next_attempt_at: string | null;
  ended_at: string | null;
  error: string | null;
};

/** Which channels; undefined ones choose all. */
export type ChannelFilter = {
  readonly labels?: readonly string[] | undefined;
  readonly reach?: readonly string[] | undefined;
};

/** The channels by name with all of the labels, and any of those of the reach. */
export async function viewChannels(
  vault: DatabaseContext,
  { labels = [], reach }: ChannelFilter = {},
): Promise<ChannelView[]> {
  const rows = (await listChannels(vault.db.reader)).filter((row) => {
    const own = parseJsonOr(row.labels, []);
    return labels.every((label) => own.includes(label)) && (reach === undefined || hasAnyLabel(own, reach));
  });
  return Promise.all(rows.map((row) => viewChannel(vault, row)));
}

/** One channel. */
export async function viewChannel({ db }: DatabaseContext, row: ChannelRow): Promise<ChannelView> {
  const attempted = { channelId: row.id, attemptedOnly: true, limit: 1 };
  const [last] = await listDeliveries(db.reader, attempted);
  return {
    name: row.name,
    type: row.type,
    target: row.target,
    events: parseJson(row.events),
    certificates: parseJson(row.certificates),
    certificate_labels: parseJsonOr(row.certificate_labels, []),
    labels: parseJsonOr(row.labels, []),
    digest_at: row.digest_at,
    digest_days: row.digest_days,
    created_at: formatTimestamp(row.created_at),
    disabled_at: formatTimestampOrNull(row.disabled_at),
    disabled_reason: row.disabled_reason,
    waiting: await countOpen(db.reader, row.id),
    last_delivery:
      last === undefined
        ? null
        : {
            at: formatTimestamp(last.last_attempt_at ?? 0),
            event: last.event,
            status: last.status,
            error: last.error,
          },
  };
}

/** A page of the log, newest first. */
export async function viewDeliveries({ db }: DatabaseContext, page: DeliveryPage): Promise<DeliveryView[]> {
  return (await listDeliveries(db.reader, page)).map(deliveryView);
}

/** One delivery of the log. */
function deliveryView(row: NamedDeliveryRow): DeliveryView {
  return {
    id: row.id,
    message_id: row.message_id,
    channel: row.channel,
    event: row.event,
    about: row.about,
    status: row.status,
    attempts: row.attempts,
    queued_at: formatTimestamp(row.queued_at),
    last_attempt_at: formatTimestampOrNull(row.last_attempt_at),
    next_attempt_at: row.ended_at === null ? formatTimestamp(row.next_attempt_at) : null,
    ended_at: formatTimestampOrNull(row.ended_at),
    error: row.error,
  };
}
