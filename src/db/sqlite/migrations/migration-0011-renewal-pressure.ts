/** Many renewals at once: which is urgent, what holds one back, and which issuer asked to wait. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  alter table certificates add column fallback_retry_after integer;
  update certificates set fallback_retry_after = retry_after, retry_after = null
    where retry_after is not null and fallback_issuer_id =
      (select issuer_id from renewals where certificate_id = certificates.id order by id desc limit 1);

  alter table renewals add column urgent_at integer not null default 0;
  alter table renewals add column dns_lane integer not null default 0;
  alter table renewals add column held_until integer;
  alter table renewals add column hold_reason text;
  alter table renewals add column limited integer not null default 0;
  alter table renewals add column name_set text;
  update renewals set urgent_at = requested_at where status in ('queued', 'running');
  create index renewals_queued on renewals (issuer_id, dns_lane, urgent_at, id, held_until) where status = 'queued';
  create index renewals_running on renewals (lease_expires_at) where status = 'running';
  create index renewals_by_names on renewals (name_set, finished_at) where status = 'succeeded';

  alter table acme_accounts add column rollover_at integer;

  create table issuance_holds (
    directory_url text not null,
    scope text not null check (scope in ('names', 'domain')),
    subject text not null,
    until integer not null,
    reason text not null,
    primary key (directory_url, scope, subject)
  ) strict, without rowid;

  create index certificate_versions_by_directory on certificate_versions (directory_url, created_at)
    where directory_url is not null
`;

export const renewalPressure: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
