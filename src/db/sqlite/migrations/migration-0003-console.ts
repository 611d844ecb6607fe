/** What the console needs: administrators and their sessions. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create table administrators (
    id integer primary key autoincrement,
    name text not null unique collate nocase,
    password_hash text not null,
    created_at integer not null,
    last_signed_in_at integer
  ) strict;

  create table sessions (
    id integer primary key autoincrement,
    administrator_id integer not null references administrators (id) on delete cascade,
    token_hash blob not null unique,
    created_at integer not null,
    expires_at integer not null,
    last_used_at integer not null,
    ip text,
    user_agent text
  ) strict;
  create index sessions_by_administrator on sessions (administrator_id);
  create index sessions_by_end on sessions (expires_at)
`;

export const administration: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
