/** The versions of a deleted certificate stay where they are, under its id. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** SQLite cannot drop a foreign key: the tables are made again without the one to `certificates`. */
const changes = `
  create table certificate_versions_kept (
    id integer primary key autoincrement,
    certificate_id integer not null,
    version integer not null,
    serial text not null,
    issuer text not null,
    subject text not null,
    domains text not null,
    key_type text not null,
    fingerprint_sha256 text not null,
    not_before integer not null,
    not_after integer not null,
    created_at integer not null,
    source text not null check (source in ('acme', 'local-ca', 'import')),
    certificate_pem text not null,
    chain_pem text not null,
    sealed_private_key blob not null,
    certificate_etag text not null,
    chain_etag text not null,
    fullchain_etag text not null,
    private_key_etag text not null,
    acme_account_id integer references acme_accounts (id) on delete set null,
    directory_url text,
    revoked_at integer,
    unique (certificate_id, version)
  ) strict;
  insert into certificate_versions_kept select * from certificate_versions;
  delete from sqlite_sequence where name = 'certificate_versions_kept';
  insert into sqlite_sequence (name, seq)
    select 'certificate_versions_kept', seq from sqlite_sequence where name = 'certificate_versions';
  drop table certificate_versions;
  alter table certificate_versions_kept rename to certificate_versions;
  create index certificate_versions_by_account on certificate_versions (acme_account_id);
  create index certificate_versions_by_directory on certificate_versions (directory_url, created_at)
    where directory_url is not null;
  create index certificate_versions_by_serial on certificate_versions (serial);

  create table next_keys_kept (
    certificate_id integer primary key,
    sealed_private_key blob not null,
    key_type text not null,
    pin text not null,
    created_at integer not null
  ) strict;
  insert into next_keys_kept select * from next_keys;
  drop table next_keys;
  alter table next_keys_kept rename to next_keys;

  alter table deleted_certificates add column certificate_id integer
`;

export const deletedInPlace: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
    for (const change of ['insert', 'update', 'delete']) {
      await sql
        .raw(
          `create trigger certificate_versions_${change}_moves_generation after ${change} on certificate_versions begin
             update settings set value = value + 1 where key = 'generation';
           end`,
        )
        .execute(db);
    }
  },
};
