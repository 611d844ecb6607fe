/** The settings of private CAs beside the built-in one, and the constraints in their certificates. It has shipped: never edit it, add a migration. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table private_cas (
    issuer_id bigint primary key references issuers (id) on delete cascade,
    common_name text collate "C",
    permit_domains text collate "C",
    permit_ips text collate "C",
    path_length bigint,
    lifetime bigint,
    key_type text collate "C"
  );
  alter table ca_certificates add column constraints text collate "C"
`;

export const privateCas: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
