/**
 * The progress of the database: SQLite keeps the highest id that each table has assigned, even if those rows are gone.
 */
import { sql } from 'kysely';
import type { Reader } from '../database.ts';
import type { HighWater } from './database-inspection.ts';

/** The highest ids in the committed state that the reader sees. */
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
