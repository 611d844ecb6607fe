/** Where API keys count: networks as JSON text, none for anywhere. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

export const keyNetworks: Migration = {
  async up(db) {
    await sql.raw(`alter table api_keys add column allowed_networks text not null default '[]'`).execute(db);
  },
};
