/**
 * Adding, changing and removing ACME issuers. Directories are fetched before the transaction, which several changes can
 * share.
 */
import type { AcmeDirectory } from '../../acme/acme-types.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import type { Writer } from '../../db/database.ts';
import {
  type AcmeIssuerRow,
  certificatesOfIssuer,
  deleteIssuerRow,
  findAcmeIssuer,
  insertAcmeIssuer,
  insertIssuer,
  updateAcmeIssuer,
} from '../../db/tables/issuance/issuers.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SealingContext, SecretsContext, TimedContext, WorldContext } from '../contexts.ts';
import type { CreateIssuerInput, UpdateIssuerInput } from '../inputs.ts';
import type { CaContext } from '../issuance-contexts.ts';
import { closeAlarm } from '../notifications/notification-alarms.ts';
import { localCaName } from '../private-ca/local-ca.ts';
import { externalAccountKeyOwner, sealFor } from '../sealed-secrets.ts';
import { type IssuerSecrets, refuseTakenIssuerName, requireIssuer } from './issuers.ts';
import { confinedUsers } from './profile-users.ts';

/** A CA whose directory was checked. */
export type CheckedIssuer = {
  readonly input: CreateIssuerInput;
  readonly secrets: IssuerSecrets;
  readonly directory: AcmeDirectory;
};

/** A change to a CA whose directory was checked: the whole row afterwards. */
export type CheckedIssuerChange = {
  readonly name: string;
  readonly row: Parameters<typeof updateAcmeIssuer>[2];
  readonly eabKey: Secret | undefined;
  readonly detail: Readonly<Record<string, unknown>>;
};

/**
 * Adds an ACME CA after checking its directory: it must be reachable, its terms must be accepted, and everything it
 * requires must be given. Throws AcmeError, OperatorError and `invalid_request` before anything is stored.
 */
export async function addIssuer(
  vault: SecretsContext & CaContext,
  actor: Actor,
  input: CreateIssuerInput,
  secrets: IssuerSecrets,
  signal: AbortSignal,
): Promise<void> {
  const checked = await checkIssuer(vault, input, secrets, signal);
  await vault.db.write((writer) => storeIssuer(vault, writer, actor, checked));
}

/** The part of `addIssuer` that contacts the CA. */
export async function checkIssuer(
  vault: CaContext,
  input: CreateIssuerInput,
  secrets: IssuerSecrets,
  signal: AbortSignal,
): Promise<CheckedIssuer> {
  await refuseTakenIssuerName(vault.db.reader, input.name);
  const directory = await vault.acme
    .at({ directory_url: input.directory_url, ca_pem: secrets.ca ?? null })
    .directory(signal);
  refuseDirectory(directory, input, secrets);
  return { input, secrets, directory };
}

/** The part of `addIssuer` that writes, in the caller's transaction. */
export async function storeIssuer(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { input, secrets, directory }: CheckedIssuer,
): Promise<void> {
  await refuseTakenIssuerName(writer, input.name);
  const now = vault.world.now();
  const id = await insertIssuer(writer, { name: input.name, type: 'acme', created_at: now });
  await insertAcmeIssuer(writer, {
    issuer_id: id,
    directory_url: input.directory_url,
    email: input.email ?? null,
    eab_kid: input.eab_kid ?? null,
    sealed_eab_key: null,
    ...(await sealedEabKey(vault, writer, id, secrets.eabKey)),
    ca_pem: secrets.ca ?? null,
    profile: input.profile ?? null,
    preferred_chain: input.preferred_chain ?? null,
    terms_of_service: secrets.acceptsTerms ? (directory.termsOfService ?? 'none') : null,
  });
  const detail = { directory_url: input.directory_url, terms_of_service: directory.termsOfService };
  record(writer, { actor, action: 'issuer.create', resource: `issuer:${input.name}`, detail }, now);
}

/**
 * Changes an ACME issuer. A different directory or EAB key id means another account; the old one stays but is no longer
 * current. The next use updates a changed contact at the CA. Throws like `addIssuer`.
 */
export async function updateIssuer(
  vault: SecretsContext & CaContext,
  actor: Actor,
  name: string,
  changes: UpdateIssuerInput,
  secrets: IssuerSecrets,
  signal: AbortSignal,
): Promise<void> {
  const checked = await checkIssuerChange(vault, name, changes, secrets, signal);
  await vault.db.write((writer) => storeIssuerChange(vault, writer, actor, checked));
}

/** The part of `updateIssuer` that contacts the CA. */
export async function checkIssuerChange(
  vault: CaContext,
  name: string,
  changes: UpdateIssuerInput,
  secrets: IssuerSecrets,
  signal: AbortSignal,
): Promise<CheckedIssuerChange> {
  const issuer = await requireIssuer(vault.db.reader, name);
  const ca = await findAcmeIssuer(vault.db.reader, issuer.id);
  if (ca === undefined) throw notAcme(name);
  const merged = { ...known(ca), ...defined(changes), name };
  // The trust root of one host does not apply to another.
  const isSameHost = new URL(merged.directory_url).host === new URL(ca.directory_url).host;
  const trust = secrets.ca === undefined && isSameHost ? ca.ca_pem : (secrets.ca ?? null);
  const directory = await vault.acme
    .at({ directory_url: merged.directory_url, ca_pem: trust })
    .directory(signal);
  const isOtherDirectory = merged.directory_url !== ca.directory_url;
  const hasAccepted = secrets.acceptsTerms || (!isOtherDirectory && ca.terms_of_service !== null);
  const isSameCustomer = merged.eab_kid === (ca.eab_kid ?? undefined);
  refuseDirectory(directory, merged, { ...secrets, acceptsTerms: hasAccepted }, isSameCustomer);
  const isAnother = isOtherDirectory || !isSameCustomer;
  return {
    name,
    eabKey: secrets.eabKey,
    row: {
      directory_url: merged.directory_url,
      email: merged.email ?? null,
      eab_kid: merged.eab_kid ?? null,
      ...(merged.eab_kid === undefined && { sealed_eab_key: null }),
      ca_pem: trust,
      profile: merged.profile ?? null,
      preferred_chain: merged.preferred_chain ?? null,
      terms_of_service: hasAccepted ? (directory.termsOfService ?? 'none') : null,
      ...(isAnother && { account_id: null, paused_until: null, pause_reason: null }),
    },
    detail: { ...changes, ...(trust !== ca.ca_pem && { ca_pem: trust === null ? null : 'replaced' }) },
  };
}

/** A private CA has no settings of an ACME CA. */
export function notAcme(name: string): OperatorError {
  return new OperatorError(`issuer ${name} is not an ACME CA and has no settings to change`);
}

/** The part of `updateIssuer` that writes, in the caller's transaction. */
export async function storeIssuerChange(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { name, row, eabKey, detail }: CheckedIssuerChange,
): Promise<void> {
  const { id } = await requireIssuer(writer, name);
  await updateAcmeIssuer(writer, id, {
    ...row,
    ...(await sealedEabKey(vault, writer, id, eabKey)),
  });
  const event = { actor, action: 'issuer.update', resource: `issuer:${name}`, detail } as const;
  record(writer, event, vault.world.now());
}

/**
 * Removes an issuer: the accounts of an ACME CA stay, the keys of a private CA are destroyed. Throws while certificates
 * use it, and for the built-in CA.
 */
export async function removeIssuer(vault: TimedContext, actor: Actor, name: string): Promise<void> {
  await vault.db.write((writer) => eraseIssuer(vault, writer, actor, name));
}

/** `removeIssuer` in the caller's transaction. */
export async function eraseIssuer(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  name: string,
): Promise<void> {
  const issuer = await requireIssuer(writer, name);
  if (name === localCaName) throw new OperatorError('the built-in private CA cannot be removed');
  const users = await certificatesOfIssuer(writer, issuer.id, 6);
  if (users.length > 0) {
    const shown = users.slice(0, 5).join(', ') + (users.length > 5 ? ' …' : '');
    throw new OperatorError(`certificates use the issuer ${name}: ${shown}`, {
      hint: 'Move these certificates with "vault certificate update --issuer", or delete them.',
    });
  }
  // Another issuer of this name might have other profiles.
  const confined = await confinedUsers(writer, (profile) => profile.startsWith(`${name}/`));
  if (confined !== undefined) {
    const { kind, names, hint } = confined;
    throw new OperatorError(`${kind} are confined to profiles of the issuer ${name}: ${names}`, { hint });
  }
  await deleteIssuerRow(writer, issuer.id);
  await closeAlarm(writer, 'private_ca.expiring', { issuerId: issuer.id });
  const detail = { type: issuer.type };
  record(writer, { actor, action: 'issuer.delete', resource: `issuer:${name}`, detail }, world.now());
}

function refuseDirectory(
  { termsOfService, externalAccountRequired, profiles }: AcmeDirectory,
  { name, eab_kid, profile, directory_url }: CreateIssuerInput,
  { eabKey, acceptsTerms }: IssuerSecrets,
  hasEabKey = false,
): void {
  if (termsOfService !== undefined && !acceptsTerms) {
    throw new OperatorError(`the CA requires you to accept its terms of service: ${termsOfService}`, {
      hint: 'Read the terms, then add --accept-terms.',
    });
  }
  if ((eabKey === undefined) !== (eab_kid === undefined) && (eabKey !== undefined || !hasEabKey)) {
    throw new OperatorError('external account binding needs both a key id and an HMAC key', {
      hint: 'Pass both --eab-kid and --eab-hmac-key-file.',
    });
  }
  if (externalAccountRequired && eab_kid === undefined) {
    throw new OperatorError(`${new URL(directory_url).host} requires external account binding (EAB)`, {
      hint: 'Get a key id and an HMAC key from the CA, and pass them with --eab-kid and --eab-hmac-key-file.',
    });
  }
  if (profile !== undefined && !Object.hasOwn(profiles, profile)) {
    const offered = Object.keys(profiles);
    throw new OperatorError(`${name} has no profile "${profile}"`, {
      hint: offered.length === 0 ? 'This CA has no profiles.' : `Use one of: ${offered.join(', ')}.`,
    });
  }
}

function known(ca: AcmeIssuerRow): Omit<CreateIssuerInput, 'name'> {
  const { directory_url, email, eab_kid, profile, preferred_chain } = ca;
  return {
    directory_url,
    ...(email !== null && { email }),
    ...(eab_kid !== null && { eab_kid }),
    ...(profile !== null && { profile }),
    ...(preferred_chain !== null && { preferred_chain }),
  };
}

/** The changed settings; a cleared one is undefined. */
function defined(changes: UpdateIssuerInput): Partial<CreateIssuerInput> {
  const named = Object.entries(changes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(named.map(([key, value]) => [key, value ?? undefined]));
}

async function sealedEabKey(vault: SealingContext, writer: Writer, id: number, key: Secret | undefined) {
  return key && { sealed_eab_key: await sealFor(vault, writer, externalAccountKeyOwner(id), key) };
}
