/**
 * Tags on API keys with their allowlists, ACME clients, administrators and sessions. A row is valid only with a tag
 * over all fields that grant rights; creating a tag requires the integrity key, so rows that were added or changed in
 * the database file are rejected. The audit log records each tag (row-records.ts), so older rows are rejected, too.
 */
import type { Kysely, Selectable } from 'kysely';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import type { Json } from '../../base/json.ts';
import { asciiNetstring, netstring, optionalNetstring } from '../../base/netstring.ts';
import type { Role } from '../../base/role.ts';
import type { Writer } from '../database.ts';
import type { Schema } from '../schema/schema.ts';
import type { AdministratorsTable, ApiKeysTable, SessionsTable } from '../schema/schema-access.ts';
import type { AcmeClientsTable } from '../schema/schema-acme-server.ts';
import { keyOriginText } from './enrollment-tags.ts';
import { labelsText } from './label-tags.ts';
import { isRecorded, type Recorded, recordedLink, recordState } from './row-records.ts';

/** A certificate of an allowlist: its id and name, neither of which may be reused. */
export type Allowed = readonly [id: number, name: string];

/** The allowlist of a key as a query returns it. */
export type Allowlist = Json<Allowed[]>;

type SessionRow = Selectable<SessionsTable>;

/** The fields of a key that grant rights. Its creation and last-use times grant none. */
export type TaggedApiKey = Omit<Selectable<ApiKeysTable>, 'created_at' | 'last_used_at' | 'last_used_ip'>;

/**
 * The fields of an ACME client that grant rights. Its key is sealed for its row, and a master key rotation reseals it.
 */
export type TaggedAcmeClient = Omit<
  Selectable<AcmeClientsTable>,
  'sealed_hmac_key' | 'created_at' | 'last_used_at' | 'last_used_ip'
>;

/** The fields of an administrator that grant rights. */
export type TaggedAdministrator = Omit<Selectable<AdministratorsTable>, 'created_at' | 'last_signed_in_at'>;

/** Whether a key, including its allowlist, is as the vault wrote it last. */
export function apiKeyFits(
  integrity: Integrity,
  row: TaggedApiKey & Recorded,
  allowlist: readonly Allowed[],
): boolean {
  // Both, so that it takes the same time for any key.
  const fits = integrity.fits('api key', apiKeyText(row, allowlist), row.tag);
  return recordState(integrity, row) !== 'old' && fits;
}

export function acmeClientFits(integrity: Integrity, row: TaggedAcmeClient & Recorded): boolean {
  return integrity.fits('acme client', acmeClientText(row), row.tag) && recordState(integrity, row) !== 'old';
}

export function administratorFits(integrity: Integrity, row: TaggedAdministrator & Recorded): boolean {
  return (
    integrity.fits('administrator', administratorText(row), row.tag) && recordState(integrity, row) !== 'old'
  );
}

export function sessionFits(integrity: Integrity, row: SessionRow & Recorded): boolean {
  return integrity.fits('session', sessionText(row), row.tag) && recordState(integrity, row) !== 'old';
}

/** Whether the current row of a key is as the vault wrote it last; false if the id does not exist. */
export async function isApiKeyAuthentic(writer: Writer, id: number): Promise<boolean> {
  const found = await readApiKey(writer, id);
  if (found === undefined) return false;
  const integrity = requireIntegrity(writer);
  const fits = integrity.fits('api key', apiKeyText(found.row, found.allowlist), found.row.tag);
  return fits && isRecorded(writer, integrity, `api-key:${id}`, found.row);
}

/** Tags a key in its current state. Check `isApiKeyAuthentic` before a change: never tag a forged row. */
export async function tagApiKey(writer: Writer, id: number): Promise<void> {
  const found = await readApiKey(writer, id);
  if (found === undefined) return;
  const tag = requireIntegrity(writer).tag('api key', apiKeyText(found.row, found.allowlist));
  writer.rows.set(`api-key:${id}`, tag);
  await writer.updateTable('api_keys').set({ tag }).where('id', '=', id).execute();
}

/** Whether the current row of an ACME client is as the vault wrote it last; false if the id does not exist. */
export async function isAcmeClientAuthentic(writer: Writer, id: number): Promise<boolean> {
  const row = await readAcmeClient(writer, id);
  if (row === undefined) return false;
  const integrity = requireIntegrity(writer);
  const fits = integrity.fits('acme client', acmeClientText(row), row.tag);
  return fits && isRecorded(writer, integrity, `acme-client:${id}`, row);
}

/** Tags an ACME client in its current state. Check `isAcmeClientAuthentic` before a change. */
export async function tagAcmeClient(writer: Writer, id: number): Promise<void> {
  const row = await readAcmeClient(writer, id);
  if (row === undefined) return;
  const tag = requireIntegrity(writer).tag('acme client', acmeClientText(row));
  writer.rows.set(`acme-client:${id}`, tag);
  await writer.updateTable('acme_clients').set({ tag }).where('id', '=', id).execute();
}

async function readAcmeClient(
  reader: Kysely<Schema>,
  id: number,
): Promise<(TaggedAcmeClient & Recorded) | undefined> {
  return reader
    .selectFrom('acme_clients')
    .selectAll()
    .select(recordedLink('acme-client', 'acme_clients.id'))
    .where('id', '=', id)
    .executeTakeFirst();
}

export async function tagAdministrator(writer: Writer, id: number): Promise<void> {
  const row = await writer
    .selectFrom('administrators')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  const tag = requireIntegrity(writer).tag('administrator', administratorText(row));
  writer.rows.set(`administrator:${row.name}`, tag);
  await writer.updateTable('administrators').set({ tag }).where('id', '=', id).execute();
}

export async function tagSession(writer: Writer, row: Omit<SessionRow, 'tag'>): Promise<void> {
  const tag = requireIntegrity(writer).tag('session', sessionText(row));
  writer.rows.set(`session:${row.id}`, tag);
  await writer.updateTable('sessions').set({ tag }).where('id', '=', row.id).execute();
}

async function readApiKey(reader: Kysely<Schema>, id: number) {
  const row = await reader
    .selectFrom('api_keys')
    .selectAll()
    .select(recordedLink('api-key', 'api_keys.id'))
    .where('id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const pairs = await allowedPairs(reader).where('api_key_id', '=', id).execute();
  return { row, allowlist: pairs.map((pair): Allowed => [pair.id, pair.name]) };
}

/** The pairs of keys and certificates of all allowlists. */
export function allowedPairs(reader: Kysely<Schema>) {
  return reader
    .selectFrom('api_key_certificates')
    .innerJoin('certificates', 'certificates.id', 'api_key_certificates.certificate_id')
    .select(['api_key_id', 'certificates.id', 'certificates.name']);
}

/** What the tag of a key is computed over. */
export function apiKeyText(row: TaggedApiKey, allowlist: readonly Allowed[]): string {
  const allowed = [...allowlist].sort(([one], [other]) => one - other);
  return (
    asciiNetstring(String(row.id)) +
    netstring(row.name) +
    netstring(row.prefix) +
    asciiNetstring(row.hash.toString('hex')) +
    netstring(row.scopes) +
    asciiNetstring(String(row.any_certificate)) +
    netstring(row.allowed_networks) +
    optionalNetstring(row.expires_at) +
    optionalNetstring(row.revoked_at) +
    allowed.map(([id, name]) => asciiNetstring(String(id)) + netstring(name)).join('') +
    previousText(row) +
    profilesText(row) +
    roleText(row.role) +
    bindingText(row) +
    labelsText('labels', row.labels) +
    labelsText('certificate labels', row.certificate_labels) +
    labelsText('reach', row.reach) +
    keyOriginText(row)
  );
}

/**
 * Empty for a key without a previous secret, so that tags from before rotations existed stay valid. Its first part is
 * no id, so that it cannot be read as a part of the allowlist.
 */
function previousText(row: TaggedApiKey): string {
  const { previous_prefix: prefix, previous_hash: hash, previous_expires_at: expiresAt } = row;
  if (prefix === null && hash === null && expiresAt === null) return '';
  return (
    asciiNetstring('previous') +
    optionalNetstring(prefix) +
    optionalNetstring(hash === null ? null : hash.toString('hex')) +
    optionalNetstring(expiresAt)
  );
}

/** Empty for who is not confined to profiles, so that tags from before profiles existed stay valid. */
function profilesText({ profiles }: { readonly profiles: Json<string[]> | null }): string {
  return profiles === null ? '' : asciiNetstring('profiles') + netstring(profiles);
}

/** Empty for the rights that all had before roles existed, so that tags of that time stay valid. */
function roleText(role: Role | null): string {
  return role === null ? '' : asciiNetstring('role') + asciiNetstring(role);
}

/** Empty for a key without a client certificate, so that tags from before these existed stay valid. */
function bindingText({ client_certificate_id: id, client_certificate: name }: TaggedApiKey): string {
  if (id === null && name === null) return '';
  return asciiNetstring('client certificate') + optionalNetstring(id) + optionalNetstring(name);
}

/** What the tag of an ACME client is computed over. */
export function acmeClientText(row: TaggedAcmeClient): string {
  return (
    asciiNetstring(String(row.id)) +
    netstring(row.name) +
    netstring(row.kid) +
    netstring(row.domains) +
    netstring(row.issuers) +
    optionalNetstring(row.profiles) +
    netstring(row.allowed_networks) +
    netstring(row.validation) +
    optionalNetstring(row.rate) +
    optionalNetstring(row.expires_at) +
    optionalNetstring(row.revoked_at) +
    labelsText('labels', row.labels)
  );
}

/** What the tag of an administrator is computed over. */
export function administratorText(row: Omit<TaggedAdministrator, 'tag'>): string {
  const { id, name, password_hash, role, oidc_issuer, oidc_subject, factors, reach } = row;
  return (
    asciiNetstring(String(id)) +
    netstring(name) +
    netstring(password_hash) +
    roleText(role === 'admin' ? null : role) +
    // Empty for people with a password, so that their tags stay valid.
    (oidc_subject === null
      ? ''
      : asciiNetstring('oidc') + optionalNetstring(oidc_issuer) + netstring(oidc_subject)) +
    // Empty for people without a second factor, so that their tags stay valid.
    (factors === null ? '' : asciiNetstring('factors') + asciiNetstring(factors.toString('hex'))) +
    labelsText('reach', reach) +
    profilesText(row)
  );
}

/** What the tag of a session is computed over. */
export function sessionText(row: Omit<SessionRow, 'tag'>): string {
  return (
    asciiNetstring(String(row.id)) +
    asciiNetstring(String(row.administrator_id)) +
    asciiNetstring(row.token_hash.toString('hex')) +
    asciiNetstring(String(row.created_at)) +
    asciiNetstring(String(row.expires_at)) +
    // Empty for sessions that began with a password, so that their tags stay valid.
    (row.oidc_sid === null ? '' : asciiNetstring('oidc') + netstring(row.oidc_sid))
  );
}
