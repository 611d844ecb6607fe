/** The CSR of certificates whose private key the client holds. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

export const certificateRequests: Migration = {
  async up(db) {
    await sql.raw('alter table certificates add column csr text').execute(db);
  },
};
