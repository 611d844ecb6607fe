/** The nodes that serve one database together, and the leases of the jobs that one of them runs. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = [
  `create table nodes (
     id text primary key,
     host text not null,
     version text not null,
     started_at integer not null,
     seen_at integer not null,
     clock_offset integer not null,
     settings text not null,
     master_keys text not null
   ) strict, without rowid`,
  `create table job_leases (
     job text primary key,
     node_id text not null,
     fence integer not null,
     expires_at integer not null
   ) strict, without rowid`,
];

export const nodes: Migration = {
  async up(db) {
    for (const statement of changes) await sql.raw(statement).execute(db);
  },
};
