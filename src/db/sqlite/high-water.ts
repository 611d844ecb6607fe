/** How far the database has come: SQLite keeps the highest id of each table that it ever gave out, also for rows that are gone. */
import { sql } from 'kysely';
import type { Reader } from '../database.ts';
import type { HighWater } from './database-inspection.ts';

/** The highest ids as the reader sees them: what it sees is durable. */
export async function readHighWater(reader: Reader): Promise<HighWater> {
  const { rows } = await sql<{
    name: string;
    seq: number;
  }>`select name, seq from sqlite_sequence where name in ('audit_events', 'certificate_versions')`.execute(
    reader,
  );
  const highest = (table: string) => rows.find(({ name }) => name === table)?.seq ?? 0;
  return { events: highest('audit_events'), versions: highest('certificate_versions') };
}
