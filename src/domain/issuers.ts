/** Issuers: who makes versions. The private CA is always there; ACME CAs are added, changed and removed by people. */
import type { AcmeDirectory } from '../acme/acme-types.ts';
import { isAddress } from '../base/identifier.ts';
import { OperatorError } from '../base/operator-error.ts';
import { Problem } from '../base/problem.ts';
import type { Secret } from '../base/secret.ts';
import type { Reader } from '../db/database.ts';
import {
  type AcmeIssuerRow,
  certificatesOfIssuer,
  deleteIssuerRow,
  findAcmeIssuer,
  findIssuer,
  type IssuerRow,
  insertAcmeIssuer,
  insertIssuer,
  listIssuers,
  updateAcmeIssuer,
} from '../db/issuers.ts';
import { type Actor, record } from './audit.ts';
import { didYouMean } from './closest-names.ts';
import type { CreateCertificateInput, CreateIssuerInput, UpdateIssuerInput } from './inputs.ts';
import { localCaName } from './local-ca.ts';
import { externalAccountKeyOwner, sealFor } from './sealed-secrets.ts';
import type { Vault } from './vault.ts';

/** Directories that people may name instead of writing their URL. */
export const knownDirectories: Readonly<Record<string, string>> = {
  letsencrypt: 'https://acme-v02.api.letsencrypt.org/directory',
  'letsencrypt-staging': 'https://acme-staging-v02.api.letsencrypt.org/directory',
};

/** What comes from files and switches beside the checked input. */
export type IssuerSecrets = {
  /** The HMAC key of the external account binding, its bytes. */
  readonly eabKey?: Secret | undefined;
  /** PEM; null for the public roots. */
  readonly ca?: string | null | undefined;
  readonly acceptsTerms: boolean;
};

/** The issuer of this name. Throws `invalid_request` that names `path` and offers those that exist. */
export async function requireIssuer(reader: Reader, name: string, path = 'name'): Promise<IssuerRow> {
  const issuer = await findIssuer(reader, name);
  if (issuer !== undefined) return issuer;
  const known = (await listIssuers(reader)).map((row) => row.name);
  throw new Problem('invalid_request', {
    detail: `There is no issuer called ${JSON.stringify(name)}.`,
    hint: Object.hasOwn(knownDirectories, name)
      ? `Add it with "vault issuer add --name ${name}".`
      : didYouMean(name, known, `Use one of: ${known.join(', ')}.`),
    errors: [{ path, message: `there is no issuer called ${JSON.stringify(name)}` }],
  });
}

/** Throws `invalid_request` for a fallback that is no other issuer. */
export function refuseSameFallback(issuer: Pick<IssuerRow, 'id' | 'name'>, fallbackId: number | null): void {
  if (fallbackId !== issuer.id) return;
  const message = `${issuer.name} cannot be its own fallback`;
  throw new Problem('invalid_request', {
    detail: `${message}.`,
    hint: 'Name another with --fallback-issuer, or none at all.',
    errors: [{ path: 'fallback_issuer', message }],
  });
}

/** Throws `invalid_request` for what this issuer could never make. */
export function refuseUnsuitable(
  issuer: Pick<IssuerRow, 'name' | 'type'>,
  wanted: Pick<CreateCertificateInput, 'key_type'> & Partial<CreateCertificateInput>,
): void {
  const refuse = (path: string, message: string) =>
    new Problem('invalid_request', { detail: `${message}.`, errors: [{ path, message }] });
  if (issuer.type !== 'acme') {
    const extras = (['profile', 'challenge'] as const).filter((option) => wanted[option] != null);
    const [extra] = extras;
    if (extra !== undefined) throw refuse(extra, `${issuer.name} is not an ACME CA and knows no ${extra}`);
    return;
  }
  if (wanted.key_type === 'ed25519') {
    throw refuse('key_type', 'ACME CAs issue no certificates for Ed25519 keys; use ec256, ec384 or RSA');
  }
  if (wanted.lifetime !== undefined) {
    throw refuse('lifetime', `${issuer.name} decides on the lifetime itself; choose a profile instead`);
  }
  const wildcard = wanted.domains?.find((domain) => domain.startsWith('*.'));
  if (wildcard !== undefined && wanted.challenge != null && !wanted.challenge.startsWith('dns-')) {
    throw refuse('challenge', `${wildcard} can be proved by dns-01 only`);
  }
  const address = wanted.domains?.find((domain) => isAddress(domain));
  if (address !== undefined && wanted.challenge?.startsWith('dns-') === true) {
    throw refuse('challenge', `${address} can be proved by http-01 or tls-alpn-01 only`);
  }
}

/**
 * Adds an ACME CA after a look at its directory: it must answer, its terms must be accepted, and it must not want more
 * than is given. Throws AcmeError, OperatorError and `invalid_request`; nothing is added then.
 */
export async function addIssuer(
  vault: Vault,
  actor: Actor,
  input: CreateIssuerInput,
  secrets: IssuerSecrets,
  signal: AbortSignal,
): Promise<void> {
  if ((await findIssuer(vault.db.reader, input.name)) !== undefined) throw taken(input.name);
  const directory = await vault.acme
    .at({ directory_url: input.directory_url, ca_pem: secrets.ca ?? null })
    .directory(signal);
  refuseDirectory(directory, input, secrets);
  await vault.db.write(async (writer) => {
    if ((await findIssuer(writer, input.name)) !== undefined) throw taken(input.name);
    const now = vault.world.now();
    const id = await insertIssuer(writer, { name: input.name, type: 'acme', created_at: now });
    await insertAcmeIssuer(writer, {
      issuer_id: id,
      directory_url: input.directory_url,
      email: input.email ?? null,
      eab_kid: input.eab_kid ?? null,
      sealed_eab_key: sealedEabKey(vault, id, secrets.eabKey),
      ca_pem: secrets.ca ?? null,
      profile: input.profile ?? null,
      preferred_chain: input.preferred_chain ?? null,
      terms_of_service: secrets.acceptsTerms ? (directory.termsOfService ?? 'none') : null,
    });
    const detail = { directory_url: input.directory_url, terms_of_service: directory.termsOfService };
    const resource = `issuer:${input.name}`;
    await record(writer, { actor, action: 'issuer.create', resource, detail }, now);
  });
}

/**
 * Changes an ACME issuer. Another directory or another customer (EAB) means another account: the old one stays, and is
 * no longer current. A new contact is told to the CA at the next use. Throws as `addIssuer`.
 */
export async function updateIssuer(
  vault: Vault,
  actor: Actor,
  name: string,
  changes: UpdateIssuerInput,
  secrets: IssuerSecrets,
  signal: AbortSignal,
): Promise<void> {
  const issuer = await requireIssuer(vault.db.reader, name);
  const ca = await findAcmeIssuer(vault.db.reader, issuer.id);
  if (ca === undefined) throw new OperatorError(`${name} is not an ACME CA and has nothing to change`);
  const merged = { ...known(ca), ...defined(changes), name };
  // The root of one host's CA says nothing about another's.
  const isSameHost = new URL(merged.directory_url).host === new URL(ca.directory_url).host;
  const trust = secrets.ca === undefined && isSameHost ? ca.ca_pem : (secrets.ca ?? null);
  const directory = await vault.acme
    .at({ directory_url: merged.directory_url, ca_pem: trust })
    .directory(signal);
  const isElsewhere = merged.directory_url !== ca.directory_url;
  const hasAccepted = secrets.acceptsTerms || (!isElsewhere && ca.terms_of_service !== null);
  const isSameCustomer = merged.eab_kid === (ca.eab_kid ?? undefined);
  refuseDirectory(directory, merged, { ...secrets, acceptsTerms: hasAccepted }, isSameCustomer);
  const isAnother = isElsewhere || !isSameCustomer;
  await vault.db.write(async (writer) => {
    await updateAcmeIssuer(writer, issuer.id, {
      directory_url: merged.directory_url,
      email: merged.email ?? null,
      eab_kid: merged.eab_kid ?? null,
      ...(secrets.eabKey !== undefined && { sealed_eab_key: sealedEabKey(vault, issuer.id, secrets.eabKey) }),
      ca_pem: trust,
      profile: merged.profile ?? null,
      preferred_chain: merged.preferred_chain ?? null,
      terms_of_service: hasAccepted ? (directory.termsOfService ?? 'none') : null,
      ...(isAnother && { account_id: null, paused_until: null, pause_reason: null }),
    });
    const detail = { ...changes, ...(trust !== ca.ca_pem && { ca_pem: trust === null ? null : 'replaced' }) };
    const event = { actor, action: 'issuer.update', resource: `issuer:${name}`, detail } as const;
    await record(writer, event, vault.world.now());
  });
}

/** Removes an issuer; its accounts stay. Throws while certificates use it, and for the private CA. */
export async function removeIssuer({ db, world }: Vault, actor: Actor, name: string): Promise<void> {
  await db.write(async (writer) => {
    const issuer = await requireIssuer(writer, name);
    if (name === localCaName) throw new OperatorError('the private CA belongs to the vault and stays');
    const users = await certificatesOfIssuer(writer, issuer.id, 6);
    if (users.length > 0) {
      const shown = users.slice(0, 5).join(', ') + (users.length > 5 ? ' …' : '');
      throw new OperatorError(`certificates still use ${name}: ${shown}`, {
        hint: 'Move them with "vault certificate update --issuer", or delete them.',
      });
    }
    await deleteIssuerRow(writer, issuer.id);
    await record(writer, { actor, action: 'issuer.delete', resource: `issuer:${name}` }, world.now());
  });
}

function refuseDirectory(
  { termsOfService, externalAccountRequired, profiles }: AcmeDirectory,
  { name, eab_kid, profile, directory_url }: CreateIssuerInput,
  { eabKey, acceptsTerms }: IssuerSecrets,
  hasEabKey = false,
): void {
  if (termsOfService !== undefined && !acceptsTerms) {
    throw new OperatorError(`the CA has terms of service: ${termsOfService}`, {
      hint: 'Read them, and accept them with --accept-terms.',
    });
  }
  if ((eabKey === undefined) !== (eab_kid === undefined) && (eabKey !== undefined || !hasEabKey)) {
    throw new OperatorError('a key id and an HMAC key belong together', {
      hint: 'Give both --eab-kid and --eab-hmac-key-file.',
    });
  }
  if (externalAccountRequired && eab_kid === undefined) {
    throw new OperatorError(`${new URL(directory_url).host} takes orders of its customers only`, {
      hint: 'Get a key id and an HMAC key from the CA, and give them with --eab-kid and --eab-hmac-key-file.',
    });
  }
  if (profile !== undefined && !Object.hasOwn(profiles, profile)) {
    const offered = Object.keys(profiles);
    throw new OperatorError(`${name} has no profile "${profile}"`, {
      hint: offered.length === 0 ? 'It has no profiles.' : `It has ${offered.join(', ')}.`,
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

/** What is changed; a wish that is taken back is undefined. */
function defined(changes: UpdateIssuerInput): Partial<CreateIssuerInput> {
  const named = Object.entries(changes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(named.map(([key, value]) => [key, value ?? undefined]));
}

function sealedEabKey(vault: Vault, issuerId: number, key: Secret | undefined): Buffer | null {
  return key === undefined ? null : sealFor(vault, externalAccountKeyOwner(issuerId), key);
}

function taken(name: string): OperatorError {
  return new OperatorError(`there is an issuer called ${name} already`, {
    hint: 'Change it with "vault issuer update", or choose another name.',
  });
}
