/** Jobs of clients and what they last reported. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** `silent_at` follows from `last_seen_at` and `next_run_at`: the index finds those to prune. */
const changes = `
  create table deployments (
    id integer primary key autoincrement,
    certificate_id integer not null references certificates (id) on delete cascade,
    api_key_id integer not null references api_keys (id) on delete cascade,
    name text not null,
    host text not null,
    job text not null,
    destination text not null,
    version integer,
    fingerprint_sha256 text,
    reload text check (reload in ('ok', 'failed')),
    reload_output text,
    verify text check (verify in ('ok', 'failed')),
    verify_output text,
    error text,
    next_run_at integer,
    client_version text,
    created_at integer not null,
    changed_at integer not null,
    last_seen_at integer not null,
    silent_at integer not null
  ) strict;
  create unique index deployments_by_name on deployments (certificate_id, name);
  create index deployments_by_certificate on deployments (certificate_id, id);
  create index deployments_by_api_key on deployments (api_key_id);
  create index deployments_by_silence on deployments (silent_at)
`;

export const deployments: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
