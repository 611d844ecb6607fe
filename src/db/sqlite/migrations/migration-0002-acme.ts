/** What ACME needs: issuers with a directory, accounts, DNS providers, challenges, and orders that survive a crash. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table acme_accounts (
    id integer primary key autoincrement,
    issuer text not null,
    directory_url text not null,
    account_url text,
    email text,
    eab_kid text,
    status text not null check (status in ('registering', 'valid', 'deactivated', 'gone')),
    sealed_private_key blob not null,
    sealed_next_private_key blob,
    created_at integer not null
  ) strict;
  create index acme_accounts_by_directory on acme_accounts (directory_url);

  create table acme_issuers (
    issuer_id integer primary key references issuers (id) on delete cascade,
    directory_url text not null,
    email text,
    eab_kid text,
    sealed_eab_key blob,
    ca_pem text,
    profile text,
    preferred_chain text,
    terms_of_service text,
    account_id integer references acme_accounts (id),
    paused_until integer,
    pause_reason text
  ) strict;
  create index acme_issuers_by_account on acme_issuers (account_id);

  create table dns_providers (
    id integer primary key autoincrement,
    name text not null unique,
    type text not null,
    zones text not null,
    sealed_secret blob not null,
    created_at integer not null
  ) strict;

  create table acme_challenges (
    id integer primary key autoincrement,
    renewal_id integer references renewals (id) on delete set null,
    identifier text not null,
    type text not null,
    token text,
    key_authorization text not null,
    dns_provider_id integer references dns_providers (id) on delete set null,
    record_name text,
    record_zone text,
    record_value text,
    created_at integer not null
  ) strict;
  create index acme_challenges_by_renewal on acme_challenges (renewal_id);
  create index acme_challenges_by_token on acme_challenges (token) where type = 'http-01';
  create index acme_challenges_by_identifier on acme_challenges (identifier) where type = 'tls-alpn-01';
  create index acme_challenges_by_dns_provider on acme_challenges (dns_provider_id);

  alter table certificates add column disabled_at integer;
  alter table certificates add column changed_at integer;
  alter table certificates add column fallback_issuer_id integer references issuers (id);
  alter table certificates add column profile text;
  alter table certificates add column challenge text;
  alter table certificates add column retry_after integer;
  alter table certificates add column ari_window_start integer;
  alter table certificates add column ari_window_end integer;
  alter table certificates add column ari_renew_at integer;
  alter table certificates add column ari_check_at integer;
  create index certificates_by_fallback_issuer on certificates (fallback_issuer_id);
  create index certificates_by_ari_check on certificates (ari_check_at)
    where auto_renew = 1 and ari_check_at is not null;

  alter table certificate_versions add column acme_account_id integer references acme_accounts (id) on delete set null;
  alter table certificate_versions add column directory_url text;
  alter table certificate_versions add column revoked_at integer;
  create index certificate_versions_by_account on certificate_versions (acme_account_id);

  alter table renewals add column issuer_id integer references issuers (id) on delete set null;
  alter table renewals add column acme_account_id integer references acme_accounts (id) on delete set null;
  alter table renewals add column order_url text;
  alter table renewals add column order_domains text;
  alter table renewals add column steps text;
  create index renewals_by_issuer on renewals (issuer_id);
  create index renewals_by_account on renewals (acme_account_id);
  create index renewals_failed on renewals (id) where status = 'failed'
`;

export const acme: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
