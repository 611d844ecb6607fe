/** The master keys that a vault has had, so that one can follow another. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const table = `
  create table master_keys (
    id text primary key,
    state text not null check (state in ('current', 'previous', 'retired')),
    since integer not null,
    retired_at integer
  ) strict, without rowid
`;

/** The key of a vault that is there already is named by its check blob, and is as old as the private CA that it sealed first. */
const first = `
  insert into master_keys (id, state, since)
  select lower(hex(substr(value, 2, 8))), 'current',
    coalesce((select min(created_at) from issuers), unixepoch() * 1000)
  from settings where key = 'master-key-check' and typeof(value) = 'blob' and length(value) > 37
`;

export const masterKeys: Migration = {
  async up(db) {
    await sql.raw(table).execute(db);
    await sql
      .raw("create unique index master_keys_current on master_keys (state) where state = 'current'")
      .execute(db);
    await sql.raw(first).execute(db);
  },
};
