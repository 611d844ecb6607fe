/** API keys as lists show them. */
import { parseJson, parseJsonOr } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Role } from '../../base/role.ts';
import type { Scope } from '../../base/scope.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { Reader } from '../../db/database.ts';
import { allowlistsOf } from '../../db/tables/access/api-key-certificates.ts';
import { type ApiKeyPage, pageApiKeys, pageApiKeysOf } from '../../db/tables/access/api-key-pages.ts';
import { type ApiKeyRow, findApiKey, type ListedApiKeyRow } from '../../db/tables/access/api-keys.ts';
import type { TimedContext } from '../contexts.ts';
import { labelsOf } from '../labels/certificate-labelling.ts';
import { inPortions, unlimited } from '../portions.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { type ApiKeyState, apiKeyState } from './authentication.ts';

/** An API key as lists show it; never the raw value or its hash. */
export type ApiKeyView = {
  id: number;
  name: string;
  prefix: string;
  scopes: Scope[];
  certificates: string[];
  /** Labels of certificates that it may access, too. */
  certificate_labels: string[];
  /** The networks it works from; empty for any. */
  allowed_networks: string[];
  /** The profiles that it may have certificates issued with; empty for any. */
  profiles: string[];
  /** What it may administer. */
  role: Role | null;
  /** The labels that confine what it may do with the role; empty for everything. */
  reach: string[];
  /** Its own labels. */
  labels: string[];
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
  /** The id of the enrollment that created it. */
  enrollment: number | null;
};

/** All keys by id, or those with all of the labels, page by page. */
export function allApiKeys(
  vault: TimedContext,
  labels?: readonly string[],
): AsyncGenerator<readonly ApiKeyView[]> {
  return inPortions<ApiKeyView>(vault, unlimited, (limit, last) =>
    pageOfApiKeys(vault, { after: last?.id, limit, labels }),
  );
}

/** A page of all keys, or of those that may read the certificate of this name. Throws `certificate_not_found`. */
export async function pageOfApiKeys(
  { db, world }: TimedContext,
  page: ApiKeyPage,
  certificate?: string,
): Promise<ApiKeyView[]> {
  const rows =
    certificate === undefined
      ? await pageApiKeys(db.reader, page)
      : await pageApiKeysOf(db.reader, await labelledCertificate(db.reader, certificate), page);
  const ids = rows.map(({ id }) => id);
  return views(rows, await allowlistsOf(db.reader, ids), world.now());
}

async function labelledCertificate(reader: Reader, name: string) {
  const row = await requireCertificate(reader, name);
  return { id: row.id, labels: labelsOf(row) };
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
    certificate_labels: parseJsonOr(row.certificate_labels, []),
    allowed_networks: parseJson(row.allowed_networks),
    profiles: parseJsonOr(row.profiles, []),
    role: row.role,
    reach: parseJsonOr(row.reach, []),
    labels: parseJsonOr(row.labels, []),
    client_certificate: row.client_certificate,
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestampOrNull(row.expires_at),
    revoked_at: formatTimestampOrNull(row.revoked_at),
    last_used_at: formatTimestampOrNull(row.last_used_at),
    last_used_ip: row.last_used_ip,
    state: apiKeyState(row, now),
    ...previousSecret(row, now),
    enrollment: row.enrollment_id,
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

/** The key of this id. Throws `api_key_not_found`. */
export async function requireApiKey(reader: Reader, id: number): Promise<ApiKeyRow> {
  const key = await findApiKey(reader, id);
  if (key !== undefined) return key;
  throw new Problem('api_key_not_found', {
    detail: `Unknown API key ${id}.`,
    hint: 'Try: vault api-key list',
  });
}
