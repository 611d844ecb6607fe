/** The nodes that serve one database together, and the leases of the jobs that one of them runs. It has shipped: never edit it, add a migration. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = [
  `create table nodes (
     id text collate "C" primary key,
     host text collate "C" not null,
     version text collate "C" not null,
     started_at bigint not null,
     seen_at bigint not null,
     clock_offset bigint not null,
     settings text collate "C" not null,
     master_keys text collate "C" not null
   )`,
  `create table job_leases (
     job text collate "C" primary key,
     node_id text collate "C" not null,
     fence bigint not null,
     expires_at bigint not null
   )`,
];

export const nodes: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of changes) await sql.raw(statement).execute(db);
  },
};
