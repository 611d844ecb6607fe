/** Notifications: channels, what they are to be told, and which alarms are open. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table notification_channels (
    id integer primary key autoincrement,
    name text not null unique,
    type text not null,
    target text not null,
    sealed_settings blob not null,
    events text not null,
    certificates text not null,
    digest_at text,
    digest_days integer not null,
    next_digest_at integer,
    last_digest_at integer,
    created_at integer not null,
    disabled_at integer,
    disabled_reason text
  ) strict;

  create table notifications (
    id integer primary key autoincrement,
    message_id text not null unique,
    event text not null,
    at integer not null,
    about text,
    data text not null
  ) strict;

  create table notification_deliveries (
    id integer primary key autoincrement,
    notification_id integer not null references notifications (id) on delete cascade,
    channel_id integer not null references notification_channels (id) on delete cascade,
    status text not null check (status in ('queued', 'sending', 'delivered', 'failed')),
    attempts integer not null default 0,
    queued_at integer not null,
    next_attempt_at integer not null,
    expires_at integer not null,
    lease_owner text,
    lease_expires_at integer,
    last_attempt_at integer,
    ended_at integer,
    error text
  ) strict;
  create index notification_deliveries_open on notification_deliveries (next_attempt_at)
    where status in ('queued', 'sending');
  create index notification_deliveries_by_notification on notification_deliveries (notification_id);
  create index notification_deliveries_by_channel on notification_deliveries (channel_id, id);
  create index notification_deliveries_ended on notification_deliveries (ended_at) where ended_at is not null;

  create table notification_alarms (
    id integer primary key autoincrement,
    event text not null,
    certificate_id integer references certificates (id) on delete cascade,
    api_key_id integer references api_keys (id) on delete cascade,
    level integer not null,
    opened_at integer not null,
    told_at integer not null,
    times_told integer not null
  ) strict;
  create unique index notification_alarms_by_subject
    on notification_alarms (event, ifnull(certificate_id, 0), ifnull(api_key_id, 0));
  create index notification_alarms_by_certificate on notification_alarms (certificate_id);
  create index notification_alarms_by_api_key on notification_alarms (api_key_id)
`;

export const notifications: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
