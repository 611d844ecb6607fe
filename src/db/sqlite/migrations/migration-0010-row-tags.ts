/**
 * Tags on the rows that decide who may do what. They need the master key: the vault computes them when it opens the database
 * (domain/row-adoption.ts). It has shipped: never edit it, add a migration.
 */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

export const rowTags: Migration = {
  async up(db) {
    for (const table of ['api_keys', 'administrators', 'sessions']) {
      await sql.raw(`alter table ${table} add column tag blob`).execute(db);
    }
  },
};
