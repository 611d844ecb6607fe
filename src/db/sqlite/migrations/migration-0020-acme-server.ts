/** ACME clients, their accounts and orders, the nonces that they used, and whose a certificate is. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table acme_clients (
    id integer primary key autoincrement,
    name text not null unique,
    kid text not null unique,
    sealed_hmac_key blob not null,
    domains text not null,
    issuers text not null,
    profiles text,
    allowed_networks text not null default '[]',
    validation text not null default '[]',
    rate integer,
    created_at integer not null,
    expires_at integer,
    revoked_at integer,
    last_used_at integer,
    last_used_ip text,
    tag blob
  ) strict;

  create table acme_client_accounts (
    id integer primary key autoincrement,
    acme_client_id integer not null references acme_clients (id) on delete cascade,
    issuer_id integer not null references issuers (id) on delete cascade,
    thumbprint text not null,
    jwk text not null,
    contacts text not null default '[]',
    status text not null check (status in ('valid', 'deactivated')),
    created_at integer not null,
    tag blob,
    unique (issuer_id, thumbprint)
  ) strict;
  create index acme_client_accounts_by_client on acme_client_accounts (acme_client_id);

  create table acme_client_orders (
    id integer primary key autoincrement,
    acme_client_id integer not null references acme_clients (id) on delete cascade,
    account_id integer not null references acme_client_accounts (id) on delete cascade,
    status text not null check (status in ('pending', 'ready', 'processing', 'valid', 'invalid')),
    identifiers text not null,
    authorizations text not null,
    profile text,
    replaces text,
    not_before integer,
    not_after integer,
    created_at integer not null,
    expires_at integer not null,
    finished_at integer,
    csr blob,
    renewal_id integer references renewals (id) on delete set null,
    certificate_id integer references certificates (id) on delete set null,
    version integer,
    error text
  ) strict;
  create index acme_client_orders_by_account on acme_client_orders (account_id, id);
  create index acme_client_orders_by_client on acme_client_orders (acme_client_id, created_at);
  create index acme_client_orders_open on acme_client_orders (acme_client_id, id)
    where status in ('pending', 'ready', 'processing');
  create index acme_client_orders_by_expiry on acme_client_orders (expires_at);
  create index acme_client_orders_by_replaced on acme_client_orders (replaces) where replaces is not null;
  create index acme_client_orders_by_renewal on acme_client_orders (renewal_id) where renewal_id is not null;
  create index acme_client_orders_by_certificate on acme_client_orders (certificate_id) where certificate_id is not null;

  create table acme_nonces (
    nonce blob primary key,
    expires_at integer not null
  ) strict, without rowid;
  create index acme_nonces_by_expiry on acme_nonces (expires_at);

  alter table certificates add column acme_client_id integer references acme_clients (id) on delete set null;
  alter table certificates add column owned_names text;
  create index certificates_by_owner on certificates (acme_client_id, issuer_id, owned_names)
    where acme_client_id is not null;
  create index certificate_versions_by_serial on certificate_versions (serial)
`;

export const acmeServer: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
