/** Profiles of private CAs, and the API keys that are confined to them. It has shipped: never edit it, add a migration. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table issuance_profiles (
    issuer_id bigint not null references issuers (id) on delete cascade,
    name text collate "C" not null,
    usage text collate "C",
    key_types text collate "C",
    lifetime bigint,
    max_lifetime bigint,
    subject text collate "C",
    name_types text collate "C",
    permit_domains text collate "C",
    permit_ips text collate "C",
    created_at bigint not null,
    primary key (issuer_id, name)
  );
  alter table api_keys add column profiles text collate "C"
`;

export const issuanceProfiles: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
