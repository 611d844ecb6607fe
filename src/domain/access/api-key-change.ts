/** Changing what an API key may do, while its secret stays: the rights of a fleet change more often than its keys should. */
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { isApiKeyAuthentic, tagApiKey } from '../../db/audit/row-tags.ts';
import type { Writer } from '../../db/database.ts';
import { clearAllowlist, insertAllowlist } from '../../db/tables/api-key-certificates.ts';
import { updateApiKey } from '../../db/tables/api-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { WorldContext } from '../contexts.ts';
import type { CreateApiKeyInput } from '../inputs.ts';
import { certificateIds, refusePast, requireApiKey } from './api-keys.ts';

/**
 * Gives a key these rights in place of its own, in the caller's transaction. They count at its next request. Throws
 * `api_key_not_found`, and `invalid_request` for certificates that do not exist, a new expiry that is over, and a key that was
 * changed by other means than the vault: its secret may be someone else's.
 */
export async function storeApiKeyChange(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  id: number,
  input: CreateApiKeyInput,
): Promise<void> {
  const key = await requireApiKey(writer, id);
  if (!(await isApiKeyAuthentic(writer, id))) throw altered(id);
  const now = world.now();
  if (input.expires_at !== key.expires_at) refusePast(input.expires_at, now);
  const allowed = input.certificates === 'any' ? [] : await certificateIds(writer, input.certificates);
  await updateApiKey(writer, id, {
    name: input.name,
    scopes: JSON.stringify(input.scopes),
    any_certificate: input.certificates === 'any' ? 1 : 0,
    allowed_networks: JSON.stringify(input.allowed_networks),
    expires_at: input.expires_at ?? null,
  });
  await clearAllowlist(writer, id);
  await insertAllowlist(writer, id, allowed);
  await tagApiKey(writer, id);
  const detail = {
    name: input.name,
    prefix: key.prefix,
    scopes: input.scopes,
    certificates: input.certificates === 'any' ? ['*'] : input.certificates,
    allowed_networks: input.allowed_networks,
    expires_at: input.expires_at === undefined ? null : formatTimestamp(input.expires_at),
  };
  await record(writer, { actor, action: 'api_key.update', resource: `api-key:${id}`, detail }, now);
}

function altered(id: number): Problem {
  const message = `API key ${id} was changed in the database by other means than the vault, and is refused`;
  return new Problem('invalid_request', {
    detail: `${message}.`,
    errors: [{ path: 'id', message }],
    hint: `Revoke it with "vault api-key revoke --id ${id}", and create a new one.`,
  });
}
