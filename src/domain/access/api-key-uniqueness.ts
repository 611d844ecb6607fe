/**
 * One name, one key: names are unique among the keys that are not revoked. Vaults from before that rule may have a name several
 * times; those keys keep working, and `vault doctor` shows them.
 */
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import { findApiKeyByName } from '../../db/tables/api-keys.ts';

/** Throws `api_key_exists` if another key that is not revoked has this name. Call it in the transaction that writes the name. */
export async function refuseTakenName(reader: Reader, name: string): Promise<void> {
  const taken = await findApiKeyByName(reader, name);
  if (taken === undefined) return;
  const message = `API key ${JSON.stringify(name)} already exists (id ${taken.id})`;
  throw new Problem('api_key_exists', {
    detail: `${message}.`,
    errors: [{ path: 'name', message }],
    hint: `Choose another name, or replace the secret of that key: vault api-key rotate ${taken.id}`,
  });
}
