/** The events that record rows, by the name of the row: few, so that no download writes into the index. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const index = 'create index audit_events_by_row on audit_events (resource, id) where length(link) > 64';

export const rowRecords: Migration = {
  async up(db) {
    await sql.raw(index).execute(db);
  },
};
