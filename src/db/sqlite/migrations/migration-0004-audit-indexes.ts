/**
 * What administrators look through: audit events by who, what and about what, and the keys for any certificate. It has
 * shipped: never edit it, add a migration.
 */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  create index audit_events_by_actor on audit_events (actor, id);
  create index audit_events_by_action on audit_events (action, id);
  create index audit_events_by_resource on audit_events (resource, id);
  create index api_keys_for_any on api_keys (id) where any_certificate = 1
`;

export const auditIndexes: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
