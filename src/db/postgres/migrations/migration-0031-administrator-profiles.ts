/** The profiles that administrators are confined to. It has shipped: never edit it, add a migration. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

export const administratorProfiles: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table administrators add column profiles text collate "C"`.execute(db);
  },
};
