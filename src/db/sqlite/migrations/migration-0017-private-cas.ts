/** The settings of private CAs beside the built-in one, and the constraints in their certificates. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table private_cas (
    issuer_id integer primary key references issuers (id) on delete cascade,
    common_name text,
    permit_domains text,
    permit_ips text,
    path_length integer,
    lifetime integer,
    key_type text
  ) strict;
  alter table ca_certificates add column constraints text
`;

export const privateCas: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
