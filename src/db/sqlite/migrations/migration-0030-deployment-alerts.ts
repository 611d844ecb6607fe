/** What was last notified about each deployment. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const change = `
  alter table deployments add column notified_state text
    check (notified_state in ('failing', 'outdated', 'silent'))
`;

export const deploymentAlerts: Migration = {
  async up(db) {
    await sql.raw(change).execute(db);
  },
};
