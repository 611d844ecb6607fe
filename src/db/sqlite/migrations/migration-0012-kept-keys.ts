/** The next key of a certificate before it is used, and deleted certificates until they are purged. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table next_keys (
    certificate_id integer primary key references certificates (id) on delete cascade,
    sealed_private_key blob not null,
    key_type text not null,
    pin text not null,
    created_at integer not null
  ) strict;

  create table deleted_certificates (
    id integer primary key autoincrement,
    name text not null,
    deleted_at integer not null,
    deleted_by text not null,
    facts text not null
  ) strict;
  create index deleted_certificates_by_name on deleted_certificates (name, id);
  create index deleted_certificates_by_time on deleted_certificates (deleted_at);

  create table deleted_versions (
    id integer primary key autoincrement,
    deleted_certificate_id integer not null references deleted_certificates (id) on delete cascade,
    version integer not null,
    facts text not null,
    sealed_private_key blob not null,
    unique (deleted_certificate_id, version)
  ) strict
`;

export const keptKeys: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
