/** When API keys were last used, in the table `api_keys`. */
import { sql } from 'kysely';
import type { Writer } from '../../database.ts';

export type ApiKeyUse = { readonly id: number; readonly at: number; readonly ip: string | null };

/** How many uses one statement sets: each has three values. */
const usesAtOnce = 200;

export async function setLastUsed(writer: Writer, uses: readonly ApiKeyUse[]): Promise<void> {
  for (let from = 0; from < uses.length; from += usesAtOnce) {
    const rows = uses
      .slice(from, from + usesAtOnce)
      .map(({ id, at, ip }) => sql`(cast(${id} as bigint), cast(${at} as bigint), cast(${ip} as text))`);
    await sql`with uses (id, at, ip) as (values ${sql.join(rows)})
      update api_keys set last_used_at = uses.at, last_used_ip = uses.ip
      from uses where uses.id = api_keys.id`.execute(writer);
  }
}
