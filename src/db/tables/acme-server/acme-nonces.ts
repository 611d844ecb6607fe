/** The table `acme_nonces`: nonces of requests that changed something, until they expire. */
import type { Expression } from 'kysely';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';

const insertion = compiledQuery((db, nonce: Expression<Buffer>, expiresAt: Expression<number>) =>
  db
    .insertInto('acme_nonces')
    .values({ nonce, expires_at: expiresAt })
    .onConflict((conflict) => conflict.doNothing())
    .returning('expires_at'),
);

/** Adds a nonce; returns false if it was used before. */
export async function insertNonce(writer: Writer, nonce: Buffer, expiresAt: number): Promise<boolean> {
  return (await insertion(writer, nonce, expiresAt)).length > 0;
}

/** When the first nonce expires; undefined if there is none. */
export async function firstNonceExpiry(reader: Reader): Promise<number | undefined> {
  const row = await reader
    .selectFrom('acme_nonces')
    .select('expires_at')
    .orderBy('expires_at')
    .limit(1)
    .executeTakeFirst();
  return row?.expires_at;
}

/** Deletes at most `limit` nonces that expired before this time, and returns how many. */
export async function deleteNonces(writer: Writer, before: number, limit: number): Promise<number> {
  const expired = writer
    .selectFrom('acme_nonces')
    .select('nonce')
    .where('expires_at', '<', before)
    .orderBy('expires_at')
    .limit(limit);
  const { numDeletedRows } = await writer
    .deleteFrom('acme_nonces')
    .where('nonce', 'in', expired)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
