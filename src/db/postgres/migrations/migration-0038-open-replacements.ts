/** An index for the open certificates of a replacement. It has shipped: never edit it, add a migration. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const change = `
  create index replacement_certificates_open on replacement_certificates (replacement_id) where finished_at is null
`;

export const openReplacements: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw(change).execute(db);
  },
};
