/** The table `factor_uses`: challenges and first steps of sign-ins that were used, kept until they expire. */
import type { Writer } from '../../database.ts';

/** How many expired rows each insertion deletes at most. */
const deletedAtOnce = 100;

/**
 * Marks this hash as used until `expiresAt`, and forgets those that have expired at `now`; returns false if it was used
 * before. Times are UTC milliseconds.
 */
export async function insertFactorUse(
  writer: Writer,
  idHash: Buffer,
  { now, expiresAt }: { readonly now: number; readonly expiresAt: number },
): Promise<boolean> {
  const expired = writer
    .selectFrom('factor_uses')
    .select('id_hash')
    .where('expires_at', '<', now)
    .orderBy('expires_at')
    .limit(deletedAtOnce);
  await writer.deleteFrom('factor_uses').where('id_hash', 'in', expired).execute();
  const added = await writer
    .insertInto('factor_uses')
    .values({ id_hash: idHash, expires_at: expiresAt })
    .onConflict((conflict) => conflict.doNothing())
    .returning('expires_at')
    .execute();
  return added.length > 0;
}
