/** Roles of administrators and of API keys. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Who existed before could do everything. */
const changes = `
  alter table administrators add column role text not null default 'admin'
    check (role in ('viewer', 'operator', 'admin'));
  alter table api_keys add column role text check (role in ('viewer', 'operator', 'admin'))
`;

export const roles: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
