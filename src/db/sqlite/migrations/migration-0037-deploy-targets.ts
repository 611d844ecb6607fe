/** Places that the vault brings certificates to, and what it did there. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** A deployment belongs to an API key or to a target: SQLite cannot drop a `not null`, so its table is written again. */
const changes = `
  create table deploy_targets (
    id integer primary key autoincrement,
    name text not null unique,
    type text not null,
    host text not null,
    sealed_settings blob not null,
    created_at integer not null,
    changed_at integer not null
  ) strict;
  create table deploy_target_certificates (
    id integer primary key autoincrement,
    deploy_target_id integer not null references deploy_targets (id) on delete cascade,
    certificate_id integer not null references certificates (id) on delete cascade,
    destination text not null,
    remote_id text,
    attempts integer not null default 0,
    error text,
    due_at integer
  ) strict;
  create unique index deploy_target_certificates_by_target
    on deploy_target_certificates (deploy_target_id, certificate_id);
  create index deploy_target_certificates_by_certificate on deploy_target_certificates (certificate_id);
  create index deploy_target_certificates_by_due on deploy_target_certificates (due_at) where due_at is not null;
  create table new_deployments (
    id integer primary key autoincrement,
    certificate_id integer not null references certificates (id) on delete cascade,
    api_key_id integer references api_keys (id) on delete cascade,
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
    silent_at integer not null,
    notified_state text check (notified_state in ('failing', 'outdated', 'silent')),
    deploy_target_id integer references deploy_targets (id) on delete cascade,
    check ((api_key_id is null) <> (deploy_target_id is null))
  ) strict;
  insert into new_deployments (id, certificate_id, api_key_id, name, host, job, destination, version,
      fingerprint_sha256, reload, reload_output, verify, verify_output, error, next_run_at, client_version, created_at,
      changed_at, last_seen_at, silent_at, notified_state)
    select id, certificate_id, api_key_id, name, host, job, destination, version, fingerprint_sha256, reload,
      reload_output, verify, verify_output, error, next_run_at, client_version, created_at, changed_at, last_seen_at,
      silent_at, notified_state from deployments;
  delete from sqlite_sequence where name = 'new_deployments';
  insert into sqlite_sequence (name, seq)
    select 'new_deployments', seq from sqlite_sequence where name = 'deployments';
  drop table deployments;
  alter table new_deployments rename to deployments;
  create unique index deployments_by_name on deployments (certificate_id, name);
  create index deployments_by_certificate on deployments (certificate_id, id);
  create index deployments_by_api_key on deployments (api_key_id) where api_key_id is not null;
  create index deployments_by_deploy_target on deployments (deploy_target_id) where deploy_target_id is not null;
  create index deployments_by_silence on deployments (silent_at)
`;

export const deployTargets: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
