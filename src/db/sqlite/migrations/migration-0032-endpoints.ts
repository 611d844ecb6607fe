/** TLS servers whose certificate the vault looks at. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The indexes find those that are due, and those of a certificate. */
const changes = `
  create table endpoints (
    id integer primary key autoincrement,
    certificate_id integer references certificates (id) on delete set null,
    host text not null,
    port integer not null,
    server_name text not null,
    starttls text check (starttls in ('smtp', 'imap', 'pop3', 'ldap', 'ftp', 'xmpp', 'postgres', 'mysql')),
    trust text not null check (trust in ('auto', 'public', 'private-ca', 'bundle')),
    ca_pem text,
    check_every integer not null,
    created_at integer not null,
    revision integer not null default 0,
    next_check_at integer not null,
    checked_at integer,
    failures integer not null default 0,
    error text,
    version integer,
    fingerprint_sha256 text,
    serial text,
    issuer text,
    names text,
    not_before integer,
    not_after integer,
    chain_complete integer,
    problem text,
    tls_version text,
    ocsp_stapled integer,
    changed_at integer,
    notified_state text
      check (notified_state in ('unreachable', 'unknown', 'outdated', 'untrusted', 'expiring'))
  ) strict;
  create unique index endpoints_by_address on endpoints (host, port, server_name);
  create index endpoints_by_certificate on endpoints (certificate_id, id);
  create index endpoints_by_next_check on endpoints (next_check_at)
`;

export const endpoints: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
