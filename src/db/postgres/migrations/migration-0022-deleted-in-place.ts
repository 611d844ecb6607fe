/** The versions of a deleted certificate stay where they are, under its id. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  alter table certificate_versions drop constraint certificate_versions_certificate_id_fkey;
  alter table next_keys drop constraint next_keys_certificate_id_fkey;
  alter table deleted_certificates add column certificate_id bigint
`;

export const deletedInPlace: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
