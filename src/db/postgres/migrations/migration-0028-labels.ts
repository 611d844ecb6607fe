/** Labels, and what is granted by them. It has shipped: never edit it, add a migration. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * The rows themselves have their labels, as JSON. The table finds rows by label and grants nothing; `allowlist` are the
 * API keys that may access certificates with the label.
 */
const changes = `
  alter table certificates add column labels text collate "C";
  alter table certificates add column labels_tag bytea;
  alter table api_keys add column labels text collate "C";
  alter table api_keys add column certificate_labels text collate "C";
  alter table api_keys add column reach text collate "C";
  alter table administrators add column reach text collate "C";
  alter table acme_clients add column labels text collate "C";
  alter table notification_channels add column labels text collate "C";
  alter table notification_channels add column certificate_labels text collate "C";
  create table object_labels (
    kind text collate "C" not null check (kind in ('certificate', 'api-key', 'acme-client', 'allowlist')),
    label text collate "C" not null,
    object_id bigint not null,
    primary key (kind, label, object_id)
  );
  create index object_labels_by_object on object_labels (kind, object_id)
`;

export const labels: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
