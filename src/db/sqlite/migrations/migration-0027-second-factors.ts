/** Second factors of administrators. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  alter table administrators add column factors blob;
  create table passkeys (
    id integer primary key autoincrement,
    administrator_id integer not null references administrators (id) on delete cascade,
    name text not null,
    credential_id blob not null unique,
    public_key blob not null,
    sign_count integer not null,
    transports text not null,
    created_at integer not null,
    last_used_at integer
  ) strict;
  create index passkeys_by_administrator on passkeys (administrator_id);
  create table authenticator_apps (
    id integer primary key autoincrement,
    administrator_id integer not null unique references administrators (id) on delete cascade,
    sealed_secret blob not null,
    last_step integer not null,
    created_at integer not null,
    last_used_at integer
  ) strict;
  create table recovery_codes (
    id integer primary key autoincrement,
    administrator_id integer not null references administrators (id) on delete cascade,
    code_hash blob not null
  ) strict;
  create index recovery_codes_by_administrator on recovery_codes (administrator_id);
  create table factor_uses (
    id_hash blob primary key,
    expires_at integer not null
  ) strict, without rowid;
  create index factor_uses_by_expiry on factor_uses (expires_at)
`;

export const secondFactors: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
