/** The first schema. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const tables = `
  create table settings (
    key text primary key,
    value any not null
  ) strict, without rowid;

  create table issuers (
    id integer primary key autoincrement,
    name text not null unique,
    type text not null,
    created_at integer not null
  ) strict;

  create table ca_certificates (
    id integer primary key autoincrement,
    issuer_id integer not null references issuers (id) on delete cascade,
    role text not null check (role in ('root', 'intermediate')),
    certificate blob not null,
    sealed_private_key blob not null,
    not_before integer not null,
    not_after integer not null,
    created_at integer not null
  ) strict;
  create index ca_certificates_by_role on ca_certificates (issuer_id, role, not_after);

  create table certificates (
    id integer primary key autoincrement,
    name text not null unique,
    domains text not null,
    key_type text not null,
    issuer_id integer references issuers (id),
    auto_renew integer not null check (auto_renew in (0, 1)),
    reuse_key integer not null check (reuse_key in (0, 1)),
    lifetime integer,
    current_version integer,
    next_renewal_at integer,
    last_attempt_at integer,
    last_error text,
    failed_attempts integer not null default 0,
    created_at integer not null
  ) strict;
  create index certificates_by_issuer on certificates (issuer_id);
  create index certificates_by_next_renewal on certificates (next_renewal_at)
    where auto_renew = 1 and next_renewal_at is not null;

  create table certificate_versions (
    id integer primary key autoincrement,
    certificate_id integer not null references certificates (id) on delete cascade,
    version integer not null,
    serial text not null,
    issuer text not null,
    subject text not null,
    domains text not null,
    key_type text not null,
    fingerprint_sha256 text not null,
    not_before integer not null,
    not_after integer not null,
    created_at integer not null,
    source text not null check (source in ('acme', 'local-ca', 'import')),
    certificate_pem text not null,
    chain_pem text not null,
    sealed_private_key blob not null,
    certificate_etag text not null,
    chain_etag text not null,
    fullchain_etag text not null,
    private_key_etag text not null,
    unique (certificate_id, version)
  ) strict;

  create table renewals (
    id integer primary key autoincrement,
    certificate_id integer not null references certificates (id) on delete cascade,
    status text not null check (status in ('queued', 'running', 'succeeded', 'failed')),
    requested_by text not null,
    requested_at integer not null,
    started_at integer,
    finished_at integer,
    claims integer not null default 0,
    lease_owner text,
    lease_expires_at integer,
    sealed_private_key blob,
    version integer,
    error text
  ) strict;
  create unique index renewals_open on renewals (certificate_id) where status in ('queued', 'running');
  create index renewals_by_certificate on renewals (certificate_id, id);

  create table api_keys (
    id integer primary key autoincrement,
    name text not null,
    prefix text not null unique,
    hash blob not null,
    scopes text not null,
    any_certificate integer not null check (any_certificate in (0, 1)),
    created_at integer not null,
    expires_at integer,
    revoked_at integer,
    last_used_at integer,
    last_used_ip text
  ) strict;

  create table api_key_certificates (
    api_key_id integer not null references api_keys (id) on delete cascade,
    certificate_id integer not null references certificates (id),
    primary key (api_key_id, certificate_id)
  ) strict, without rowid;
  create index api_key_certificates_by_certificate on api_key_certificates (certificate_id);

  create table audit_events (
    id integer primary key autoincrement,
    at integer not null,
    actor text not null,
    action text not null,
    resource text not null,
    detail text not null,
    ip text,
    request_id text
  ) strict;
`;

/**
 * What the caches of a running server are made of. Every change to it moves the generation on, by trigger, so that no
 * writer can forget to. The use of a key and the progress of renewals are left out: they change often and mean nothing
 * to a cache of rights.
 */
const watched = [
  'certificates',
  'certificate_versions',
  'ca_certificates',
  'api_key_certificates',
  'api_keys',
] as const;

const rightsOfKeys = 'update of name, prefix, hash, scopes, any_certificate, expires_at, revoked_at';

export const firstSchema: Migration = {
  async up(db) {
    for (const statement of tables.split(';')) {
      if (statement.trim() !== '') await sql.raw(statement).execute(db);
    }
    await sql`insert into settings (key, value) values ('generation', 0)`.execute(db);
    for (const table of watched) {
      for (const change of ['insert', table === 'api_keys' ? rightsOfKeys : 'update', 'delete']) {
        const name = `${table}_${change.split(' ')[0]}_moves_generation`;
        await sql
          .raw(
            `create trigger ${name} after ${change} on ${table} begin
               update settings set value = value + 1 where key = 'generation';
             end`,
          )
          .execute(db);
      }
    }
  },
};
