/**
 * The first schema on PostgreSQL: the tables that SQLite has after the migration of the same number. It has shipped: never
 * edit it, add a migration.
 */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { accessTables } from './schema-0013-access.ts';
import { certificateTables } from './schema-0013-certificates.ts';

/** Texts are compared by their bytes, as SQLite does, not by the locale of the database. */
const tables = `${certificateTables};${accessTables}`.replaceAll(/\btext\b/g, 'text collate "C"');

/** Called by triggers: no writer can forget to move the generation. */
const moveGeneration = `
  create function move_generation() returns trigger language plpgsql as $$
  begin
    update settings set value = to_jsonb(cast(value as bigint) + 1) where key = 'generation';
    return null;
  end $$`;

/** What the caches of running servers are made of. The use of a key and the progress of renewals are not. */
const watched = {
  certificates: 'insert or update or delete',
  certificate_versions: 'insert or update or delete',
  ca_certificates: 'insert or update or delete',
  api_key_certificates: 'insert or update or delete',
  api_keys:
    'insert or delete or update of name, prefix, hash, scopes, any_certificate, expires_at, revoked_at, ' +
    'previous_prefix, previous_hash, previous_expires_at',
};

export const firstSchema: Migration = {
  async up(db: Kysely<unknown>) {
    const run = (statement: string) => sql.raw(statement).execute(db);
    for (const statement of tables.split(';')) await run(statement);
    // Its row of the generation is written all the time: room for that on the same page.
    await run('alter table settings set (fillfactor = 50)');
    await run(`insert into settings (key, value) values ('generation', to_jsonb(0))`);
    await run(moveGeneration);
    for (const [table, changes] of Object.entries(watched)) {
      await run(`create trigger ${table}_moves_generation after ${changes} on ${table}
        for each statement execute function move_generation()`);
    }
  },
};
