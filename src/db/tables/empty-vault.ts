/** Whether a database was never used: it contains no sealed data, events or rights. */
import type { Kysely } from 'kysely';
import type { Schema } from '../schema/schema.ts';

const tables = [
  'master_keys',
  'audit_events',
  'api_keys',
  'administrators',
  'sessions',
  'certificates',
  'certificate_versions',
  'ca_certificates',
] as const;

export async function isEmptyVault(reader: Kysely<Schema>): Promise<boolean> {
  for (const table of tables) {
    const any = await reader
      .selectFrom(table)
      .select(({ lit }) => lit(1).as('one'))
      .limit(1)
      .executeTakeFirst();
    if (any !== undefined) return false;
  }
  return true;
}
