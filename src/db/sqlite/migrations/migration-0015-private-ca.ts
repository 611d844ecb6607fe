/** Revoked certificates of the private CA, its signed CRLs, and what else it can issue. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  alter table certificates add column usage text;
  alter table certificates add column uris text;
  alter table certificates add column emails text;
  alter table certificates add column subject text;

  create table revoked_certificates (
    id integer primary key autoincrement,
    ca_certificate_id integer not null references ca_certificates (id) on delete cascade,
    serial text not null,
    reason integer not null,
    revoked_at integer not null,
    not_after integer not null,
    unique (ca_certificate_id, serial)
  ) strict;
  create index revoked_certificates_by_authority on revoked_certificates (ca_certificate_id, id);
  create index revoked_certificates_by_expiry on revoked_certificates (ca_certificate_id, not_after);

  create table crls (
    ca_certificate_id integer primary key references ca_certificates (id) on delete cascade,
    revocations integer not null,
    covered integer not null,
    number integer not null,
    signed_at integer not null,
    next_update integer not null,
    crl blob not null
  ) strict
`;

export const privateCa: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
