/** Labels, and what is granted by them. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * The rows themselves have their labels, as JSON. The table finds rows by label and grants nothing; `allowlist` are the
 * API keys that may access certificates with the label.
 */
const changes = `
  alter table certificates add column labels text;
  alter table certificates add column labels_tag blob;
  alter table api_keys add column labels text;
  alter table api_keys add column certificate_labels text;
  alter table api_keys add column reach text;
  alter table administrators add column reach text;
  alter table acme_clients add column labels text;
  alter table notification_channels add column labels text;
  alter table notification_channels add column certificate_labels text;
  create table object_labels (
    kind text not null check (kind in ('certificate', 'api-key', 'acme-client', 'allowlist')),
    label text not null,
    object_id integer not null,
    primary key (kind, label, object_id)
  ) strict, without rowid;
  create index object_labels_by_object on object_labels (kind, object_id)
`;

export const labels: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
