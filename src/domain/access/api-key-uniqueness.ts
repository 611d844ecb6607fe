/**
 * One name, one key: names are unique among the keys that are not revoked, and none reads like another. Vaults from
 * before that rule may have a name several times; those keys keep working, and `vault doctor` shows them.
 */
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import { findApiKeyLike } from '../../db/tables/access/api-keys.ts';
import { refuseUnfitName } from '../new-names.ts';

/**
 * Throws `invalid_request` for a name that looks like another, and `api_key_exists` if a key that is not revoked has a
 * name that reads the same; that of the key `own` may. Call it in the transaction that writes the name.
 */
export async function refuseTakenName(reader: Reader, name: string, own?: number): Promise<void> {
  refuseUnfitName(name);
  const taken = await findApiKeyLike(reader, name, own);
  if (taken === undefined) return;
  const message = `API key ${JSON.stringify(taken.name)} already exists (id ${taken.id})`;
  throw new Problem('api_key_exists', {
    detail: `${message}.`,
    errors: [{ path: 'name', message }],
    hint: `Choose another name, or replace the secret of that key: vault api-key rotate ${taken.id}`,
  });
}
