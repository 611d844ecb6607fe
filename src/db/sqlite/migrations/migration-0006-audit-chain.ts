/**
 * The audit log becomes a chain: what is there is chained too, so that from now on it cannot be changed unseen either. And
 * the keys that sign checkpoints of it. It has shipped: never edit it, add a migration.
 */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { Schema } from '../../schema/schema.ts';
import { chainUnlinked } from './unlinked-events.ts';

const changes = `
  alter table audit_events add column link blob not null default x'';

  create table audit_keys (
    id integer primary key autoincrement,
    public_key blob not null unique,
    sealed_private_key blob,
    created_at integer not null
  ) strict
`;

export const auditChain: Migration = {
  async up(db: Kysely<Schema>) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
    await chainUnlinked(db);
  },
};
