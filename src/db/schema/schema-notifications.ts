/** The notification tables as queries see them; times are UTC milliseconds, lists are JSON text. */
import type { Generated } from 'kysely';
import type { Json } from '../../base/json.ts';

export type NotificationChannelsTable = {
  id: Generated<number>;
  name: string;
  type: string;
  /** The destination, as shown in lists. */
  target: string;
  /** JSON of its settings and credentials. */
  sealed_settings: Buffer;
  /** The events that the channel receives. */
  events: Json<string[]>;
  /** Name patterns; none for all certificates. */
  certificates: Json<string[]>;
  /** `HH:MM` in UTC; null for no digest. */
  digest_at: string | null;
  digest_days: number;
  next_digest_at: number | null;
  last_digest_at: number | null;
  created_at: number;
  disabled_at: number | null;
  disabled_reason: string | null;
  /** Labels of the channel; null for none. */
  labels: Generated<Json<string[]> | null>;
  /** Labels of the certificates that it is about, each or all; null for all certificates. */
  certificate_labels: Generated<Json<string[]> | null>;
};

export type NotificationsTable = {
  id: Generated<number>;
  /** The id of the message that recipients see. */
  message_id: string;
  event: string;
  at: number;
  /** The name of the certificate, key or private CA, for lists. */
  about: string | null;
  data: Json<Readonly<Record<string, unknown>>>;
};

export type DeliveryStatus = 'queued' | 'sending' | 'delivered' | 'failed';

export type NotificationDeliveriesTable = {
  id: Generated<number>;
  notification_id: number;
  channel_id: number;
  status: DeliveryStatus;
  attempts: Generated<number>;
  queued_at: number;
  next_attempt_at: number;
  /** No more attempts after this time. */
  expires_at: number;
  lease_owner: string | null;
  lease_expires_at: number | null;
  last_attempt_at: number | null;
  ended_at: number | null;
  error: string | null;
};

/** Current problems, so that each is notified once, repeated at growing intervals, and resolved. */
export type NotificationAlarmsTable = {
  id: Generated<number>;
  /** The event; of an alarm about an issuer, with its id: `private_ca.expiring/7`. */
  event: string;
  certificate_id: number | null;
  api_key_id: number | null;
  /** The severity at the last notification; higher is worse. */
  level: number;
  opened_at: number;
  told_at: number;
  times_told: number;
};

export type NotificationTables = {
  notification_channels: NotificationChannelsTable;
  notifications: NotificationsTable;
  notification_deliveries: NotificationDeliveriesTable;
  notification_alarms: NotificationAlarmsTable;
};
