/** Emergency replacements and the certificates of each. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** `replacement_certificates_by_turn` finds the next steps; finished rows are not in it. */
const changes = `
  create table replacements (
    id integer primary key autoincrement,
    reason text not null check (reason in ('superseded', 'ca-compromised', 'key-compromised')),
    issuer text,
    labels text,
    certificate text,
    created_by text not null,
    created_at integer not null,
    deadline_at integer not null,
    finished_at integer,
    canceled_by text
  ) strict;
  create table replacement_certificates (
    id integer primary key autoincrement,
    replacement_id integer not null references replacements (id) on delete cascade,
    certificate_id integer references certificates (id) on delete set null,
    name text not null,
    state text not null
      check (state in ('waiting', 'renewing', 'issued', 'live', 'revoked', 'failed', 'canceled')),
    old_version integer not null,
    new_version integer,
    renewal_id integer,
    live integer not null default 0,
    places integer not null default 0,
    attempts integer not null default 0,
    error text,
    next_at integer not null,
    changed_at integer not null,
    finished_at integer
  ) strict;
  create index replacement_certificates_by_replacement on replacement_certificates (replacement_id, id);
  create index replacement_certificates_by_certificate on replacement_certificates (certificate_id);
  create index replacement_certificates_by_turn on replacement_certificates (state, next_at)
    where finished_at is null
`;

export const replacements: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
