/**
 * Creates, rotates, revokes and deletes ACME clients: the programs that may order certificates from the vault. Every
 * change shares a transaction with its audit event.
 */
import { toJson } from '../../../base/json.ts';
import { Problem } from '../../../base/problem.ts';
import { formatTimestampOrNull } from '../../../base/timestamp.ts';
import { goneRow } from '../../../db/audit/row-records.ts';
import { isAcmeClientAuthentic, tagAcmeClient } from '../../../db/audit/row-tags.ts';
import type { Reader, Writer } from '../../../db/database.ts';
import {
  type AcmeClientRow,
  deleteAcmeClientRow,
  findAcmeClientLike,
  insertAcmeClient,
  setAcmeClientRevoked,
} from '../../../db/tables/acme-server/acme-clients.ts';
import { labelsText } from '../../../db/tables/certificates/certificate-labels.ts';
import { findProfile } from '../../../db/tables/issuance/issuance-profiles.ts';
import { indexLabels } from '../../../db/tables/object-labels.ts';
import { refusePast } from '../../access/api-keys.ts';
import { confinementText } from '../../access/profile-confinement.ts';
import { type Actor, record } from '../../audit/audit.ts';
import type { SealingContext, SecretsContext, TimedContext, WorldContext } from '../../contexts.ts';
import { requireIssuer } from '../../issuers/issuers.ts';
import { refuseUnfitName } from '../../new-names.ts';
import type { CreateAcmeClientInput } from './acme-client-inputs.ts';
import { type AcmeClientKey, createAcmeClientKey, storeAcmeClientKey } from './acme-client-keys.ts';
import { type AcmeClientState, acmeClientState, requireAcmeClient } from './acme-client-views.ts';

/**
 * New orders per hour of a client that may use a public CA, unless its creator says otherwise: half of what Let's
 * Encrypt permits an account, so that a client in a loop leaves some for the others.
 */
export const gatewayRate = 50;

/** The rights of a client with its rate decided. */
export type AcmeClientRights = CreateAcmeClientInput & { readonly rate: number | null };

/**
 * Creates a client and returns its key, which cannot be shown again. Throws `acme_client_exists` for a name that is
 * taken, and `invalid_request` for an expiry in the past and for issuers and profiles that do not exist.
 */
export async function createAcmeClient(
  vault: SecretsContext,
  actor: Actor,
  input: CreateAcmeClientInput,
): Promise<{ readonly id: number; readonly key: AcmeClientKey }> {
  const key = createAcmeClientKey(vault);
  const id = await vault.db.write((writer) => storeAcmeClient(vault, writer, actor, input, key));
  return { id, key };
}

/** `createAcmeClient` in the caller's transaction, with a key from the caller. Returns the id of the client. */
export async function storeAcmeClient(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  input: CreateAcmeClientInput,
  key: AcmeClientKey,
): Promise<number> {
  const now = vault.world.now();
  refusePast(input.expires_at, now);
  await refuseTakenClientName(writer, input.name);
  const rights = await checkedRights(writer, input);
  const row = { ...columnsOf(rights), kid: key.kid, created_at: now };
  const id = await insertAcmeClient(writer, row);
  await storeAcmeClientKey(vault, writer, id, key);
  await indexLabels(writer, 'acme-client', id, input.labels);
  await tagAcmeClient(writer, id);
  const detail = { ...shownRights(rights), kid: key.kid };
  record(writer, { actor, action: 'acme_client.create', resource: resourceOf(id), detail }, now);
  return id;
}

/** Throws `invalid_request` for issuers and profiles that do not exist; decides the rate that is left open. */
export async function checkedRights(reader: Reader, input: CreateAcmeClientInput): Promise<AcmeClientRights> {
  let usesPublicCa = false;
  const ids = new Map<string, number>();
  for (const name of input.issuers) {
    const issuer = await requireIssuer(reader, name, 'issuers');
    usesPublicCa ||= issuer.type === 'acme';
    if (issuer.type !== 'acme') ids.set(name, issuer.id);
  }
  for (const reference of input.profiles) {
    const [name = '', profile = ''] = reference.split('/');
    const id = ids.get(name);
    if (id === undefined) {
      throw refused(
        'profiles',
        `${JSON.stringify(reference)} names no private CA among the issuers of the client`,
      );
    }
    if ((await findProfile(reader, id, profile)) === undefined) {
      throw refused('profiles', `issuer ${name} has no profile ${JSON.stringify(profile)}`);
    }
  }
  return { ...input, rate: input.rate === undefined ? (usesPublicCa ? gatewayRate : null) : input.rate };
}

/** The rights of a client as its row has them. */
export function columnsOf(rights: AcmeClientRights) {
  return {
    name: rights.name,
    domains: toJson(rights.domains),
    issuers: toJson(rights.issuers),
    profiles: confinementText(rights.profiles),
    allowed_networks: toJson(rights.allowed_networks),
    validation: toJson(rights.validation),
    rate: rights.rate,
    expires_at: rights.expires_at ?? null,
    labels: labelsText(rights.labels),
  };
}

/** The rights of a client as the audit log shows them. */
export function shownRights({ expires_at, ...rights }: AcmeClientRights) {
  const { name, domains, issuers, profiles, allowed_networks, validation, rate, labels } = rights;
  const end = formatTimestampOrNull(expires_at ?? null);
  return { name, domains, issuers, profiles, allowed_networks, validation, rate, expires_at: end, labels };
}

/**
 * Throws `invalid_request` for a name that looks like another, and `acme_client_exists` if a client has a name that
 * reads the same; that of the client `own` may. Call it in the transaction that writes the name.
 */
export async function refuseTakenClientName(reader: Reader, name: string, own?: number): Promise<void> {
  refuseUnfitName(name);
  const taken = await findAcmeClientLike(reader, name, own);
  if (taken === undefined) return;
  const isRevoked = taken.revoked_at !== null;
  const message = `ACME client ${JSON.stringify(taken.name)} already exists (id ${taken.id}${isRevoked ? ', revoked' : ''})`;
  throw new Problem('acme_client_exists', {
    detail: `${message}.`,
    errors: [{ path: 'name', message }],
    hint: isRevoked
      ? `Choose another name, or delete that client: vault acme-client delete ${taken.id}`
      : `Choose another name, or replace the key of that client: vault acme-client rotate ${taken.id}`,
  });
}

/**
 * Gives a client a new key at once; only new accounts need it. Accounts of before keep working. Throws
 * `acme_client_not_found`, `acme_client_inactive`, and `invalid_request` for a client that was modified outside the
 * vault.
 */
export async function rotateAcmeClient(
  vault: SecretsContext,
  actor: Actor,
  id: number,
): Promise<{ readonly name: string; readonly key: AcmeClientKey }> {
  const key = createAcmeClientKey(vault);
  return vault.db.write(async (writer) => {
    const client = await requireAcmeClient(writer, id);
    const now = vault.world.now();
    refuseInactiveClient(client, acmeClientState(client, now));
    await refuseAlteredClient(writer, id);
    await storeAcmeClientKey(vault, writer, id, key);
    await tagAcmeClient(writer, id);
    const detail = { name: client.name, kid: key.kid, previous_kid: client.kid };
    record(writer, { actor, action: 'acme_client.rotate', resource: resourceOf(id), detail }, now);
    return { name: client.name, key };
  });
}

/**
 * Revokes a client and its accounts with immediate effect. Revoking it again does nothing. Throws
 * `acme_client_not_found`.
 */
export async function revokeAcmeClient(vault: TimedContext, actor: Actor, id: number): Promise<void> {
  await vault.db.write((writer) => storeClientRevocation(vault, writer, actor, id));
}

/** `revokeAcmeClient` in the caller's transaction. */
export async function storeClientRevocation(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  id: number,
): Promise<void> {
  const client = await requireAcmeClient(writer, id);
  if (client.revoked_at !== null) return;
  const isAuthentic = await isAcmeClientAuthentic(writer, id);
  await setAcmeClientRevoked(writer, id, world.now());
  if (isAuthentic) await tagAcmeClient(writer, id);
  // As for API keys: what an altered row was before counts no more if it is put back.
  else writer.rows.set(`acme-client:${id}`, goneRow);
  record(writer, { actor, action: 'acme_client.revoke', ...subject(client) }, world.now());
}

/**
 * Deletes a revoked client with its accounts and orders; its certificates stay. Throws `acme_client_not_found`, and
 * `acme_client_active` if it is not revoked.
 */
export async function deleteAcmeClient({ db, world }: TimedContext, actor: Actor, id: number): Promise<void> {
  await db.write(async (writer) => {
    const client = await requireAcmeClient(writer, id);
    if (client.revoked_at === null) {
      throw new Problem('acme_client_active', {
        detail: `ACME client ${id} (${client.name}) is not revoked; only revoked clients can be deleted.`,
        hint: `Fix: vault acme-client revoke ${id}`,
      });
    }
    await deleteAcmeClientRow(writer, id);
    record(writer, { actor, action: 'acme_client.delete', ...subject(client) }, world.now());
  });
}

/** The client in the audit log. */
export function resourceOf(id: number): string {
  return `acme-client:${id}`;
}

function subject({ id, name, kid }: AcmeClientRow) {
  return { resource: resourceOf(id), detail: { name, kid } };
}

/** Throws `acme_client_inactive` unless the client is active. */
export function refuseInactiveClient(
  { id, name }: Pick<AcmeClientRow, 'id' | 'name'>,
  state: AcmeClientState,
): void {
  if (state === 'active') return;
  throw new Problem('acme_client_inactive', {
    detail: `ACME client ${id} (${name}) ${state === 'revoked' ? 'is revoked' : 'has expired'}.`,
    hint:
      state === 'revoked'
        ? 'Try: vault acme-client create'
        : `Try: vault acme-client update ${id} --expires-at TIME`,
  });
}

/** Throws `invalid_request` for a client that was modified outside the vault. */
export async function refuseAlteredClient(writer: Writer, id: number): Promise<void> {
  if (await isAcmeClientAuthentic(writer, id)) return;
  const message = `ACME client ${id} is refused: its database row was modified outside the vault`;
  throw new Problem('invalid_request', {
    detail: `${message}.`,
    errors: [{ path: 'id', message }],
    hint: `Create a new client and revoke this one with "vault acme-client revoke ${id}".`,
  });
}

function refused(path: string, message: string): Problem {
  return new Problem('invalid_request', {
    detail: `${message.charAt(0).toUpperCase()}${message.slice(1)}.`,
    errors: [{ path, message }],
  });
}
