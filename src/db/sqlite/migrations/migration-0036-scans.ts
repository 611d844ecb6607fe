/** Scans of networks, and the TLS servers they found. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The indexes find the finding at an address, and those of a scan and of a certificate. */
const changes = `
  create table scans (
    id integer primary key autoincrement,
    networks text not null,
    ports text not null,
    rate integer not null,
    run_every integer,
    created_at integer not null,
    position integer not null default 0,
    total integer not null,
    started_at integer,
    finished_at integer,
    due_at integer,
    claimed_until integer not null default 0
  ) strict;
  create table scan_findings (
    id integer primary key autoincrement,
    scan_id integer not null references scans (id) on delete cascade,
    host text not null,
    port integer not null,
    starttls text,
    certificate_id integer references certificates (id) on delete set null,
    version integer,
    fingerprint_sha256 text not null,
    issuer text not null,
    names text not null,
    not_before integer not null,
    not_after integer not null,
    chain_pem text not null,
    first_seen_at integer not null,
    seen_at integer not null
  ) strict;
  create unique index scan_findings_by_address on scan_findings (host, port);
  create index scan_findings_by_scan on scan_findings (scan_id, seen_at);
  create index scan_findings_by_certificate on scan_findings (certificate_id)
`;

export const scans: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
