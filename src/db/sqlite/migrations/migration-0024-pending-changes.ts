/** Changes that wait for the approval of a second administrator. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table pending_changes (
    id integer primary key autoincrement,
    operation text not null,
    summary text not null,
    digest blob not null,
    role text not null check (role in ('viewer', 'operator', 'admin')),
    requested_by text not null,
    requested_at integer not null,
    expires_at integer not null,
    decision text check (decision in ('approved', 'rejected')),
    decided_by text,
    decided_at integer,
    applied_at integer,
    tag blob
  ) strict;
  create index pending_changes_by_digest on pending_changes (digest);
  create index pending_changes_by_expiry on pending_changes (expires_at)
`;

export const pendingChanges: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
