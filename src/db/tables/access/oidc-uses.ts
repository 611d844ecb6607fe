/** The table `oidc_uses`: what an OpenID Connect provider vouched for and may be used once, until it expires. */
import type { Reader, Writer } from '../../database.ts';

/** How many expired rows each insertion deletes at most. */
const deletedAtOnce = 100;

/** Times are UTC milliseconds; `result` is sealed. */
type OidcUse = { readonly now: number; readonly expiresAt: number; readonly result?: Buffer | null };

/**
 * Marks this hash as used until `expiresAt`, and forgets those that have expired at `now`; returns false if it was used
 * before.
 */
export async function insertOidcUse(
  writer: Writer,
  idHash: Buffer,
  { now, expiresAt, result = null }: OidcUse,
): Promise<boolean> {
  const expired = writer
    .selectFrom('oidc_uses')
    .select('id_hash')
    .where('expires_at', '<', now)
    .orderBy('expires_at')
    .limit(deletedAtOnce);
  await writer.deleteFrom('oidc_uses').where('id_hash', 'in', expired).execute();
  const added = await writer
    .insertInto('oidc_uses')
    .values({ id_hash: idHash, expires_at: expiresAt, result })
    .onConflict((conflict) => conflict.doNothing())
    .returning('expires_at')
    .execute();
  return added.length > 0;
}

/** The result of the use of this hash; undefined before it is used. */
export async function findOidcResult(reader: Reader, idHash: Buffer): Promise<Buffer | undefined> {
  const row = await reader
    .selectFrom('oidc_uses')
    .select('result')
    .where('id_hash', '=', idHash)
    .executeTakeFirst();
  return row?.result ?? undefined;
}

/** The number of results that have not expired at `now`, counted up to `limit`. */
export async function countOidcResults(reader: Reader, now: number, limit: number): Promise<number> {
  const rows = await reader
    .selectFrom('oidc_uses')
    .select('id_hash')
    .where('expires_at', '>', now)
    .where('result', 'is not', null)
    .limit(limit)
    .execute();
  return rows.length;
}

/** Replaces the result `from`; returns false if it was replaced or forgotten meanwhile. */
export async function replaceOidcResult(
  writer: Writer,
  idHash: Buffer,
  { from, to }: { readonly from: Buffer; readonly to: Buffer },
): Promise<boolean> {
  const changed = await writer
    .updateTable('oidc_uses')
    .set({ result: to })
    .where('id_hash', '=', idHash)
    .where('result', '=', from)
    .returning('expires_at')
    .execute();
  return changed.length > 0;
}

/** Forgets the result, and keeps that the hash was used; returns false if there was none. */
export async function deleteOidcResult(writer: Writer, idHash: Buffer): Promise<boolean> {
  const forgotten = await writer
    .updateTable('oidc_uses')
    .set({ result: null })
    .where('id_hash', '=', idHash)
    .where('result', 'is not', null)
    .returning('expires_at')
    .execute();
  return forgotten.length > 0;
}
