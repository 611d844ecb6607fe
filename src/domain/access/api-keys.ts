/** Creates, lists, revokes and deletes API keys. Every change shares a transaction with its audit event. */
import { parseJson, parseJsonOr, toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Role } from '../../base/role.ts';
import type { Scope } from '../../base/scope.ts';
import type { Secret } from '../../base/secret.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { type ApiKeyToken, createToken } from '../../crypto/secrets/api-key-token.ts';
import { isApiKeyAuthentic, tagApiKey } from '../../db/audit/row-tags.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { allowlistsOf, insertAllowlist } from '../../db/tables/access/api-key-certificates.ts';
import {
  type ApiKeyRow,
  deleteApiKeyRow,
  findApiKey,
  insertApiKey,
  type ListedApiKeyRow,
  pageApiKeys,
  pageApiKeysOf,
  setRevoked,
} from '../../db/tables/access/api-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import { bindingTo } from '../client-certificates/key-binding.ts';
import type { TimedContext, WorldContext } from '../contexts.ts';
import type { CreateApiKeyInput } from '../inputs.ts';
import { allowlistIds, requireCertificate } from '../versions/certificate-lookup.ts';
import { refuseTakenName } from './api-key-uniqueness.ts';
import { type ApiKeyState, apiKeyState } from './authentication.ts';
import { confinementText, refuseUnfitProfiles } from './profile-confinement.ts';

/** An API key as lists show it; never the raw value or its hash. */
export type ApiKeyView = {
  id: number;
  name: string;
  prefix: string;
  scopes: Scope[];
  certificates: string[];
  /** The networks it works from; empty for any. */
  allowed_networks: string[];
  /** The profiles that it may sign for; empty for any. */
  profiles: string[];
  /** What it may administer. */
  role: Role | null;
  /** The certificate without which it does not work. */
  client_certificate: string | null;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
  last_used_ip: string | null;
  state: ApiKeyState;
  /** The secret that the last rotation replaced, while it is valid. */
  previous_prefix: string | null;
  previous_expires_at: string | null;
};

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

/** `createApiKey` in the caller's transaction, with a token from the caller. Returns the id of the key. */
export async function storeApiKey(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  input: CreateApiKeyInput,
  { prefix, hash }: ApiKeyToken,
): Promise<number> {
  const now = world.now();
  refusePast(input.expires_at, now);
  const allowed = input.certificates === 'any' ? [] : await allowlistIds(writer, input.certificates);
  await refuseTakenName(writer, input.name);
  await refuseUnfitProfiles(writer, input);
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
    created_at: now,
    expires_at: input.expires_at ?? null,
  });
  await insertAllowlist(writer, id, allowed);
  await tagApiKey(writer, id);
  const detail = {
    name: input.name,
    prefix,
    scopes: input.scopes,
    certificates: input.certificates === 'any' ? ['*'] : input.certificates,
    allowed_networks: input.allowed_networks,
    profiles: input.profiles,
    ...(input.role !== null && { role: input.role }),
    ...(input.client_certificate !== null && { client_certificate: input.client_certificate }),
    expires_at: formatTimestampOrNull(input.expires_at ?? null),
  };
  record(writer, { actor, action: 'api_key.create', resource: `api-key:${id}`, detail }, now);
  return id;
}

/** Throws `invalid_request` for an expiry in the past. */
export function refusePast(expiresAt: number | undefined, now: number): void {
  if (expiresAt === undefined || expiresAt > now) return;
  throw refused('expires_at', `${formatTimestamp(expiresAt)} is not in the future`);
}

/** Keys per page when all are read: a few milliseconds of work. */
const keysAtOnce = 500;

/** All keys by id, page by page. */
export async function* allApiKeys(vault: TimedContext): AsyncGenerator<ApiKeyView[]> {
  let after: number | undefined;
  for (;;) {
    const page = await pageOfApiKeys(vault, { after, limit: keysAtOnce });
    yield page;
    if (page.length < keysAtOnce) return;
    after = page.at(-1)?.id;
  }
}

/** A page of a list: at most `limit` keys after the id `after`. */
export type ApiKeyPage = { readonly after?: number | undefined; readonly limit: number };

/** A page of all keys, or of those that may read the certificate of this name. Throws `certificate_not_found`. */
export async function pageOfApiKeys(
  { db, world }: TimedContext,
  page: ApiKeyPage,
  certificate?: string,
): Promise<ApiKeyView[]> {
  const rows =
    certificate === undefined
      ? await pageApiKeys(db.reader, page)
      : await pageApiKeysOf(db.reader, (await requireCertificate(db.reader, certificate)).id, page);
  const ids = rows.map(({ id }) => id);
  return views(rows, await allowlistsOf(db.reader, ids), world.now());
}

/** One key as lists show it. Throws `api_key_not_found`. */
export async function viewApiKey({ db, world }: TimedContext, id: number): Promise<ApiKeyView> {
  const row = await requireApiKey(db.reader, id);
  const [view] = views([row], await allowlistsOf(db.reader, [id]), world.now());
  if (view === undefined) throw new Error('viewApiKey: no view for a row');
  return view;
}

function views(
  rows: readonly ListedApiKeyRow[],
  allowlists: readonly { readonly api_key_id: number; readonly name: string }[],
  now: number,
): ApiKeyView[] {
  const byKey = Map.groupBy(allowlists, ({ api_key_id }) => api_key_id);
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    scopes: parseJson(row.scopes),
    certificates: row.any_certificate === 1 ? ['*'] : (byKey.get(row.id) ?? []).map(({ name }) => name),
    allowed_networks: parseJson(row.allowed_networks),
    profiles: parseJsonOr(row.profiles, []),
    role: row.role,
    client_certificate: row.client_certificate,
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestampOrNull(row.expires_at),
    revoked_at: formatTimestampOrNull(row.revoked_at),
    last_used_at: formatTimestampOrNull(row.last_used_at),
    last_used_ip: row.last_used_ip,
    state: apiKeyState(row, now),
    ...previousSecret(row, now),
  }));
}

/** The previous secret ends with its overlap, or with the key. */
function previousSecret(row: ListedApiKeyRow, now: number) {
  const end = Math.min(row.previous_expires_at ?? 0, row.expires_at ?? Number.POSITIVE_INFINITY);
  const isValid = end > now && row.revoked_at === null;
  return {
    previous_prefix: isValid ? row.previous_prefix : null,
    previous_expires_at: isValid ? formatTimestamp(end) : null,
  };
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

/** The key of this id. Throws `api_key_not_found`. */
export async function requireApiKey(reader: Reader, id: number): Promise<ApiKeyRow> {
  const key = await findApiKey(reader, id);
  if (key !== undefined) return key;
  throw new Problem('api_key_not_found', {
    detail: `Unknown API key ${id}.`,
    hint: 'Try: vault api-key list',
  });
}

function refused(path: string, message: string, hint?: string): Problem {
  return new Problem('invalid_request', {
    detail: `${path}: ${message}.`,
    errors: [{ path, message }],
    ...(hint !== undefined && { hint }),
  });
}
