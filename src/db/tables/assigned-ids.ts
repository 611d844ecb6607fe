/** The highest ids that tables ever assigned, even if those rows are gone: they never decrease. */
import { type Kysely, sql } from 'kysely';
import { assignedIds } from '../engine-sql.ts';
import type { Schema } from '../schema/schema.ts';

/** The progress of a database: how many events and versions it has recorded. */
export type HighWater = { readonly events: number; readonly versions: number };

/** The highest ids in the committed state that the reader sees. */
export async function readHighWater(reader: Kysely<Schema>): Promise<HighWater> {
  const { rows } = await sql<{ readonly name: string; readonly seq: number }>`
    select name, seq from ${assignedIds()} as ids where name in ('audit_events', 'certificate_versions')
  `.execute(reader);
  const highest = (table: string) => rows.find(({ name }) => name === table)?.seq ?? 0;
  return { events: highest('audit_events'), versions: highest('certificate_versions') };
}

/** The highest id ever assigned to an event; 0 if there never was one. */
export async function lastGivenId(reader: Kysely<Schema>): Promise<number> {
  return (await readHighWater(reader)).events;
}
