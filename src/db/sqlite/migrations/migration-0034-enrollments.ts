/** Enrollment tokens, and the API keys that they created. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** `certificates` are pairs of ids and names, as JSON. SQLite cannot change a check, so one table is written again. */
const changes = `
  create table enrollments (
    id integer primary key autoincrement,
    name text not null,
    prefix text not null unique,
    hash blob not null,
    scopes text not null,
    any_certificate integer not null check (any_certificate in (0, 1)),
    certificates text not null,
    certificate_labels text,
    allowed_networks text not null,
    bind_address integer not null check (bind_address in (0, 1)),
    labels text,
    key_expires_at integer,
    max_uses integer not null,
    uses integer not null default 0,
    created_by text not null,
    created_at integer not null,
    expires_at integer not null,
    revoked_at integer,
    last_used_at integer,
    tag blob
  ) strict;
  alter table api_keys add column enrollment_id integer;
  alter table api_keys add column enrollment_request blob;
  create index api_keys_by_enrollment on api_keys (enrollment_id, id) where enrollment_id is not null;
  create unique index api_keys_by_enrollment_request on api_keys (enrollment_id, enrollment_request)
    where enrollment_request is not null;
  create table labels_of_objects (
    kind text not null check (kind in ('certificate', 'api-key', 'acme-client', 'allowlist', 'enrollment')),
    label text not null,
    object_id integer not null,
    primary key (kind, label, object_id)
  ) strict, without rowid;
  insert into labels_of_objects (kind, label, object_id) select kind, label, object_id from object_labels;
  drop table object_labels;
  alter table labels_of_objects rename to object_labels;
  create index object_labels_by_object on object_labels (kind, object_id)
`;

export const enrollments: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
