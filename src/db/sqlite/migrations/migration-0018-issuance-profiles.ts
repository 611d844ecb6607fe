/** Profiles of private CAs, and the API keys that are confined to them. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table issuance_profiles (
    issuer_id integer not null references issuers (id) on delete cascade,
    name text not null,
    usage text,
    key_types text,
    lifetime integer,
    max_lifetime integer,
    subject text,
    name_types text,
    permit_domains text,
    permit_ips text,
    created_at integer not null,
    primary key (issuer_id, name)
  ) strict;
  alter table api_keys add column profiles text
`;

export const issuanceProfiles: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
