/** Changes the rights of an API key and keeps its secret, so that a fleet does not need new keys. */
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { isApiKeyAuthentic, tagApiKey } from '../../db/audit/row-tags.ts';
import type { Writer } from '../../db/database.ts';
import { clearAllowlist, insertAllowlist } from '../../db/tables/api-key-certificates.ts';
import { type ApiKeyRow, updateApiKey } from '../../db/tables/api-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { WorldContext } from '../contexts.ts';
import type { CreateApiKeyInput } from '../inputs.ts';
import { refuseTakenName } from './api-key-uniqueness.ts';
import { certificateIds, refusePast, requireApiKey } from './api-keys.ts';
import type { ApiKeyState } from './authentication.ts';

/**
 * Replaces the rights of a key in the caller's transaction; they apply to its next request. Throws `api_key_not_found`,
 * `api_key_exists` for a new name that another key has, and `invalid_request` for unknown certificates, a new expiry in the past, and a key that was modified outside the vault, because
 * its secret may belong to an attacker.
 */
export async function storeApiKeyChange(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  id: number,
  input: CreateApiKeyInput,
): Promise<void> {
  const key = await requireApiKey(writer, id);
  await refuseAltered(writer, id);
  const now = world.now();
  if (input.expires_at !== key.expires_at) refusePast(input.expires_at, now);
  const allowed = input.certificates === 'any' ? [] : await certificateIds(writer, input.certificates);
  if (input.name !== key.name) await refuseTakenName(writer, input.name);
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

/** Throws `api_key_inactive` unless the key is active. */
export function refuseInactive({ id, name }: Pick<ApiKeyRow, 'id' | 'name'>, state: ApiKeyState): void {
  if (state === 'active') return;
  throw new Problem('api_key_inactive', {
    detail: `API key ${id} (${name}) ${state === 'revoked' ? 'is revoked' : 'has expired'}.`,
    hint: 'Try: vault api-key create',
  });
}

/** Throws `invalid_request` for a key that was modified outside the vault. */
export async function refuseAltered(writer: Writer, id: number): Promise<void> {
  if (await isApiKeyAuthentic(writer, id)) return;
  const message = `API key ${id} is refused: its database row was modified outside the vault`;
  throw new Problem('invalid_request', {
    detail: `${message}.`,
    errors: [{ path: 'id', message }],
    hint: `Create a new key and revoke this one with "vault api-key revoke --id ${id}".`,
  });
}
