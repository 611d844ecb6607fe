/**
 * Indexes for the limits of ACME clients: open orders by their expiry, and failed ones. It has shipped: never edit it,
 * add a migration.
 */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  drop index acme_client_orders_open;
  create index acme_client_orders_open on acme_client_orders (acme_client_id, expires_at, status)
    where status in ('pending', 'ready', 'processing');
  create index acme_client_orders_failed on acme_client_orders (acme_client_id, finished_at)
    where status = 'invalid';
  create index acme_client_orders_past_failures on acme_client_orders (finished_at) where status = 'invalid'
`;

export const acmeOrderLimits: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
