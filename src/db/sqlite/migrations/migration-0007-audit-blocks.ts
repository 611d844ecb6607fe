/**
 * The audit events of an actor and about a resource are indexed in blocks of 1,024 ids (audit-search.ts): what is written
 * now goes into the same few pages, while an index over all ids has a page for each actor and resource, of which every
 * download would write two. It has shipped: never edit it, add a migration.
 */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  drop index audit_events_by_actor;
  drop index audit_events_by_resource;
  create index audit_events_by_actor on audit_events (id >> 10, actor);
  create index audit_events_by_resource on audit_events (id >> 10, resource)
`;

export const auditBlocks: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
