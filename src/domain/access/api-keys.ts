/** Creates, revokes and deletes API keys. Every change shares a transaction with its audit event. */
import { toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { type ApiKeyToken, createToken } from '../../crypto/secrets/api-key-token.ts';
import { goneRow } from '../../db/audit/row-records.ts';
import { isApiKeyAuthentic, tagApiKey } from '../../db/audit/row-tags.ts';
import type { Writer } from '../../db/database.ts';
import { insertAllowlist } from '../../db/tables/access/api-key-certificates.ts';
import {
  type ApiKeyRow,
  deleteApiKeyRow,
  insertApiKey,
  type KeyOrigin,
  setRevoked,
} from '../../db/tables/access/api-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import { bindingTo } from '../client-certificates/key-binding.ts';
import type { TimedContext, WorldContext } from '../contexts.ts';
import type { CreateApiKeyInput } from '../inputs.ts';
import { indexKey, labelColumns, namedLabels } from '../labels/key-labels.ts';
import { refuseUnfitReach } from '../labels/reach.ts';
import { allowlistIds } from '../versions/certificate-lookup.ts';
import { refuseTakenName } from './api-key-uniqueness.ts';
import { requireApiKey } from './api-key-views.ts';
import { confinementText, refuseUnfitProfiles } from './profile-confinement.ts';

/**
 * Creates a key and returns its raw value, which cannot be shown again. Throws `api_key_exists` if a key that is not
 * revoked has the name, and `invalid_request` if the expiry is not in the future or an allowed certificate does not
 * exist, or the client certificate is unsuitable.
 */
export async function createApiKey(
  vault: TimedContext,
  actor: Actor,
  input: CreateApiKeyInput,
): Promise<{ readonly id: number; readonly raw: Secret<string> }> {
  const token = createToken(vault.world);
  const id = await vault.db.write((writer) => storeApiKey(vault, writer, actor, input, token));
  return { id, raw: token.raw };
}

/**
 * `createApiKey` in the caller's transaction, with a token from the caller, and the enrollment that creates it. Returns
 * the id of the key.
 */
export async function storeApiKey(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  input: CreateApiKeyInput,
  { prefix, hash }: ApiKeyToken,
  origin?: KeyOrigin,
): Promise<number> {
  const now = world.now();
  refusePast(input.expires_at, now);
  const allowed = input.certificates === 'any' ? [] : await allowlistIds(writer, input.certificates);
  await refuseTakenName(writer, input.name);
  await refuseUnfitProfiles(writer, input);
  refuseUnfitReach(input.role, input.reach);
  const binding = await bindingTo(writer, input.client_certificate);
  const id = await insertApiKey(writer, {
    name: input.name,
    prefix,
    hash,
    scopes: toJson(input.scopes),
    any_certificate: input.certificates === 'any' ? 1 : 0,
    allowed_networks: toJson(input.allowed_networks),
    profiles: confinementText(input.profiles),
    role: input.role,
    ...binding,
    ...labelColumns(input),
    ...origin,
    created_at: now,
    expires_at: input.expires_at ?? null,
  });
  await insertAllowlist(writer, id, allowed);
  await indexKey(writer, id, input);
  await tagApiKey(writer, id);
  const detail = {
    name: input.name,
    prefix,
    scopes: input.scopes,
    certificates: input.certificates === 'any' ? ['*'] : input.certificates,
    allowed_networks: input.allowed_networks,
    profiles: input.profiles,
    ...(input.role !== null && { role: input.role }),
    ...namedLabels(input),
    ...(input.client_certificate !== null && { client_certificate: input.client_certificate }),
    expires_at: formatTimestampOrNull(input.expires_at ?? null),
    ...(origin && { enrollment: origin.enrollment_id }),
  };
  record(writer, { actor, action: 'api_key.create', resource: `api-key:${id}`, detail }, now);
  return id;
}

/** Throws `invalid_request` for an expiry in the past. */
export function refusePast(expiresAt: number | undefined, now: number): void {
  if (expiresAt === undefined || expiresAt > now) return;
  throw refused('expires_at', `${formatTimestamp(expiresAt)} is not in the future`);
}

/** Revokes a key with immediate effect. Revoking it again does nothing. Throws `api_key_not_found`. */
export async function revokeApiKey(vault: TimedContext, actor: Actor, id: number): Promise<void> {
  await vault.db.write((writer) => storeRevocation(vault, writer, actor, id));
}

/** `revokeApiKey` in the caller's transaction. */
export async function storeRevocation(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  id: number,
): Promise<void> {
  const key = await requireApiKey(writer, id);
  if (key.revoked_at !== null) return;
  const isAuthentic = await isApiKeyAuthentic(writer, id);
  await setRevoked(writer, id, world.now());
  if (isAuthentic) await tagApiKey(writer, id);
  // An altered row stays altered, and what it was before counts no more if it is put back.
  else writer.rows.set(`api-key:${id}`, goneRow);
  record(writer, { actor, action: 'api_key.revoke', ...subject(key) }, world.now());
}

/** Deletes a revoked key. Throws `api_key_not_found`, and `api_key_active` if it is not revoked. */
export async function deleteApiKey({ db, world }: TimedContext, actor: Actor, id: number): Promise<void> {
  await db.write(async (writer) => {
    const key = await requireApiKey(writer, id);
    if (key.revoked_at === null) {
      throw new Problem('api_key_active', {
        detail: `API key ${id} (${key.name}) is not revoked; only revoked keys can be deleted.`,
        hint: `Fix: vault api-key revoke --id ${id}`,
      });
    }
    await deleteApiKeyRow(writer, id);
    record(writer, { actor, action: 'api_key.delete', ...subject(key) }, world.now());
  });
}

function subject({ id, name, prefix }: ApiKeyRow) {
  return { resource: `api-key:${id}`, detail: { name, prefix } };
}

function refused(path: string, message: string, hint?: string): Problem {
  return new Problem('invalid_request', {
    detail: `${path}: ${message}.`,
    errors: [{ path, message }],
    ...(hint !== undefined && { hint }),
  });
}
