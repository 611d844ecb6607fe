/** Replaces the secret of an API key: clients get the new one during the overlap, while the old one stays valid. */
import type { Secret } from '../../base/secret.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { createToken } from '../../crypto/secrets/api-key-token.ts';
import { tagApiKey } from '../../db/audit/row-tags.ts';
import type { Writer } from '../../db/database.ts';
import { setSecret } from '../../db/tables/access/api-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { TimedContext, WorldContext } from '../contexts.ts';
import { refuseAltered, refuseInactive } from './api-key-change.ts';
import type { RotateApiKeyInput } from './api-key-inputs.ts';
import { requireApiKey } from './api-key-views.ts';
import { apiKeyState } from './authentication.ts';

export type Rotation = {
  readonly name: string;
  /** The new raw value, which cannot be shown again. */
  readonly raw: Secret<string>;
  /** Until when the old secret is valid; null if it ended at once. */
  readonly previousExpiresAt: string | null;
  /** Whether an earlier rotation's overlap was still running; its old secret ends now. */
  readonly endedEarlier: boolean;
};

/**
 * Gives the key a new secret and ends the old one after `overlap` milliseconds. Throws `api_key_not_found`,
 * `api_key_inactive` for a revoked or expired key, and `invalid_request` for a key that was modified outside the vault.
 */
export async function rotateApiKey(
  vault: TimedContext,
  actor: Actor,
  id: number,
  input: RotateApiKeyInput,
): Promise<Rotation> {
  const token = createToken(vault.world);
  return vault.db.write((writer) => storeRotation(vault, writer, actor, id, token, input));
}

/** `rotateApiKey` in the caller's transaction, with a token from the caller. */
export async function storeRotation(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  id: number,
  { prefix, hash, raw }: ReturnType<typeof createToken>,
  { overlap }: RotateApiKeyInput,
): Promise<Rotation> {
  const key = await requireApiKey(writer, id);
  const now = world.now();
  refuseInactive(key, apiKeyState(key, now));
  await refuseAltered(writer, id);
  const end = overlap === 0 ? null : now + overlap;
  await setSecret(writer, id, {
    prefix,
    hash,
    previous_prefix: end === null ? null : key.prefix,
    previous_hash: end === null ? null : key.hash,
    previous_expires_at: end,
  });
  await tagApiKey(writer, id);
  const endedEarlier = key.previous_expires_at !== null && key.previous_expires_at > now;
  const detail = {
    name: key.name,
    prefix,
    previous_prefix: key.prefix,
    previous_expires_at: formatTimestamp(end ?? now),
    ...(endedEarlier && { ended_prefix: key.previous_prefix }),
  };
  record(writer, { actor, action: 'api_key.rotate', resource: `api-key:${id}`, detail }, now);
  return { name: key.name, raw, previousExpiresAt: formatTimestampOrNull(end), endedEarlier };
}
