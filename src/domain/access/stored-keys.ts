/** Recognizes raw API keys of any state. */
import { readToken, tokenMatches } from '../../crypto/secrets/api-key-token.ts';
import type { Reader } from '../../db/database.ts';
import { findApiKeyByPrefix } from '../../db/tables/access/api-keys.ts';

/** Whether the text is the raw value of a key that is stored, before or after its last rotation. */
export async function isStoredKey(reader: Reader, raw: string): Promise<boolean> {
  const token = readToken(raw);
  const key = token && (await findApiKeyByPrefix(reader, token.prefix));
  if (token === undefined || key === undefined) return false;
  return tokenMatches(token, key.hash) || tokenMatches(token, key.previous_hash ?? undefined);
}
