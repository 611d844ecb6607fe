/** Changes the settings of an API key and keeps its secret, so that a fleet does not need new keys. */
import type { CertName } from '../../base/cert-name.ts';
import { parseJson, parseJsonOr, toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestampOrNull } from '../../base/timestamp.ts';
import { isApiKeyAuthentic, tagApiKey } from '../../db/audit/row-tags.ts';
import type { Reader, Writer } from '../../db/database.ts';
import {
  allowlistsOf,
  clearAllowlist,
  insertAllowlist,
} from '../../db/tables/access/api-key-certificates.ts';
import { type ApiKeyRow, updateApiKey } from '../../db/tables/access/api-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import { bindingTo } from '../client-certificates/key-binding.ts';
import type { TimedContext, WorldContext } from '../contexts.ts';
import type { CreateApiKeyInput } from '../inputs.ts';
import { indexKey, labelColumns } from '../labels/key-labels.ts';
import { refuseUnfitReach } from '../labels/reach.ts';
import { allowlistIds } from '../versions/certificate-lookup.ts';
import type { UpdateApiKeyInput } from './api-key-inputs.ts';
import { refuseTakenName } from './api-key-uniqueness.ts';
import { requireApiKey } from './api-key-views.ts';
import { refusePast } from './api-keys.ts';
import type { ApiKeyState } from './authentication.ts';
import { confinementText, refuseUnfitProfiles } from './profile-confinement.ts';

/**
 * Changes some settings of a key with immediate effect, and returns whether any has another value now. Throws
 * `api_key_not_found`, `api_key_inactive` for a revoked key, and what `storeApiKeyChange` throws.
 */
export async function changeApiKey(
  vault: TimedContext,
  actor: Actor,
  id: number,
  { expires_at, ...changes }: UpdateApiKeyInput,
): Promise<boolean> {
  return vault.db.write(async (writer) => {
    const key = await requireApiKey(writer, id);
    if (key.revoked_at !== null) refuseInactive(key, 'revoked');
    const { expires_at: kept, ...current } = await settingsOf(writer, key);
    const end = expires_at === undefined ? kept : (expires_at ?? undefined);
    const set = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
    const input = { ...current, ...set, expires_at: end };
    if (set.certificates !== undefined || set.certificate_labels !== undefined) refuseNoCertificates(input);
    return storeApiKeyChange(vault, writer, actor, id, input);
  });
}

/** Throws `invalid_request` if the allowlist would be empty. */
function refuseNoCertificates({ certificates, certificate_labels: labels }: CreateApiKeyInput): void {
  if (certificates === 'any' || certificates.length > 0 || labels.length > 0) return;
  const message = 'at least one certificate name or label is required, or "*" for any certificate';
  throw new Problem('invalid_request', {
    detail: `certificates: ${message}.`,
    errors: [{ path: 'certificates', message }],
  });
}

/**
 * Replaces the settings of a key in the caller's transaction; they apply to its next request. Returns whether any has
 * another value now; if not, nothing is written. Throws `api_key_not_found`, `api_key_exists` for a new name that
 * another key has, and `invalid_request` for unknown or unsuitable certificates, a new expiry in the past, and a key
 * that was modified outside the vault, because its secret may belong to an attacker.
 */
export async function storeApiKeyChange(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  id: number,
  input: CreateApiKeyInput,
): Promise<boolean> {
  const key = await requireApiKey(writer, id);
  await refuseAltered(writer, id);
  const now = world.now();
  if (input.expires_at !== key.expires_at) refusePast(input.expires_at, now);
  const allowed = input.certificates === 'any' ? [] : await allowlistIds(writer, input.certificates);
  if (input.name !== key.name) await refuseTakenName(writer, input.name, id);
  if (input.profiles.length > 0) await refuseUnfitProfiles(writer, input);
  refuseUnfitReach(input.role, input.reach);
  const binding = await bindingTo(writer, input.client_certificate, key);
  const after = shown(input);
  const before = differences(shown(await settingsOf(writer, key)), after);
  const isOther = binding.client_certificate_id !== key.client_certificate_id;
  if (Object.keys(before).length === 0 && !isOther) return false;
  await updateApiKey(writer, id, {
    name: input.name,
    scopes: toJson(input.scopes),
    any_certificate: input.certificates === 'any' ? 1 : 0,
    allowed_networks: toJson(input.allowed_networks),
    profiles: confinementText(input.profiles),
    role: input.role,
    ...binding,
    ...labelColumns(input),
    expires_at: input.expires_at ?? null,
  });
  await clearAllowlist(writer, id);
  await insertAllowlist(writer, id, allowed);
  await indexKey(writer, id, input);
  await tagApiKey(writer, id);
  const detail = { ...namedSettings(after, before), prefix: key.prefix, before };
  record(writer, { actor, action: 'api_key.update', resource: `api-key:${id}`, detail }, now);
  return true;
}

const rareSettings: readonly string[] = [
  'role',
  'client_certificate',
  'certificate_labels',
  'reach',
  'labels',
];

/** Without settings that the key neither has nor had and that most keys never have. */
function namedSettings(after: Shown, before: Partial<Shown>): Partial<Shown> {
  const isUnset = (value: unknown) => value === null || (Array.isArray(value) && value.length === 0);
  const isNamed = ([name, value]: [string, unknown]) =>
    !rareSettings.includes(name) || !isUnset(value) || name in before;
  return Object.fromEntries(Object.entries(after).filter(isNamed));
}

/** The settings of a key as an input that would leave them unchanged. */
async function settingsOf(reader: Reader, key: ApiKeyRow): Promise<CreateApiKeyInput> {
  const allowlist = await allowlistsOf(reader, [key.id]);
  return {
    name: key.name,
    scopes: parseJson(key.scopes),
    // Names were parsed before they were stored.
    certificates: key.any_certificate === 1 ? 'any' : allowlist.map(({ name }) => name as CertName),
    allowed_networks: parseJson(key.allowed_networks),
    profiles: parseJsonOr(key.profiles, []),
    role: key.role,
    certificate_labels: parseJsonOr(key.certificate_labels, []),
    reach: parseJsonOr(key.reach, []),
    labels: parseJsonOr(key.labels, []),
    client_certificate: key.client_certificate as CertName | null,
    expires_at: key.expires_at ?? undefined,
  };
}

/** Settings as the audit log shows them. */
function shown({ certificates, expires_at, ...rest }: CreateApiKeyInput) {
  return {
    ...rest,
    certificates: certificates === 'any' ? ['*'] : certificates,
    expires_at: formatTimestampOrNull(expires_at ?? null),
  };
}

/** The former values of the settings that differ; the order of a list does not matter. */
function differences(before: Shown, after: Shown): Partial<Shown> {
  const differs = ([name, value]: [string, unknown]) =>
    canonical(value) !== canonical(after[name as keyof Shown]);
  return Object.fromEntries(Object.entries(before).filter(differs));
}

type Shown = ReturnType<typeof shown>;

function canonical(value: unknown): string {
  return JSON.stringify(Array.isArray(value) ? [...value].sort() : value);
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
