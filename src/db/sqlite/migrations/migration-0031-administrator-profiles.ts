/** The profiles that administrators are confined to. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

export const administratorProfiles: Migration = {
  async up(db) {
    await sql`alter table administrators add column profiles text`.execute(db);
  },
};
