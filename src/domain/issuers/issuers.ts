/** Finds issuers and checks whether they can issue a certificate. */

import { isAddress } from '../../base/identifier.ts';
import { defaultKeyType, type KeyType } from '../../base/key-type.ts';
import { isSpiffe } from '../../base/leaf-names.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import type { Reader } from '../../db/database.ts';
import { findProfile } from '../../db/tables/issuance/issuance-profiles.ts';
import {
  findAcmeIssuer,
  findIssuer,
  findIssuerById,
  type IssuerRow,
  listIssuers,
} from '../../db/tables/issuance/issuers.ts';
import { didYouMean } from '../closest-names.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import type { CreateCertificateInput } from '../inputs.ts';
import { alikeName } from '../new-names.ts';
import { settingsOfCa } from '../private-ca/ca-settings.ts';
import { refuseByCompany } from '../private-ca/company-root.ts';
import type { LeafSettings } from '../private-ca/leaf-settings.ts';
import { type CertifiedNames, refuseForbidden } from '../private-ca/permitted-names.ts';
import { profileIn } from '../private-ca/profile-settings.ts';

/** Directories with a short name. */
export const knownDirectories: Readonly<Record<string, string>> = {
  letsencrypt: 'https://acme-v02.api.letsencrypt.org/directory',
  'letsencrypt-staging': 'https://acme-staging-v02.api.letsencrypt.org/directory',
};

/** Secrets and consent, which are not part of the checked input. */
export type IssuerSecrets = {
  /** The HMAC key of the external account binding, its bytes. */
  readonly eabKey?: Secret | undefined;
  /** PEM; null for the public roots. */
  readonly ca?: string | null | undefined;
  readonly acceptsTerms: boolean;
};

/** A CA that certificates come from. */
export type Issuer = IssuerRow;

/** The issuer of this name. */
export function issuerNamed({ db }: DatabaseContext, name: string): Promise<Issuer | undefined> {
  return findIssuer(db.reader, name);
}

/** The issuer with this id. */
export function issuerWithId({ db }: DatabaseContext, id: number): Promise<Issuer | undefined> {
  return findIssuerById(db.reader, id);
}

/** Until when (UTC milliseconds) an ACME CA wants no orders, and why; undefined where it takes them now. */
export async function pauseOfIssuer(
  { db, world }: TimedContext,
  id: number,
): Promise<{ readonly until: number; readonly reason: string | null } | undefined> {
  const ca = await findAcmeIssuer(db.reader, id);
  if (ca?.paused_until == null || ca.paused_until <= world.now()) return undefined;
  return { until: ca.paused_until, reason: ca.pause_reason };
}

/** The issuer of this name. Throws `invalid_request` at `path` that suggests existing names. */
export async function requireIssuer(reader: Reader, name: string, path = 'name'): Promise<IssuerRow> {
  const issuer = await findIssuer(reader, name);
  if (issuer !== undefined) return issuer;
  const known = (await listIssuers(reader)).map((row) => row.name);
  throw unknownIssuer(name, known, path);
}

/** `invalid_request` at `path` for a name that is not among the `known` ones; suggests similar ones. */
export function unknownIssuer(name: string, known: readonly string[], path = 'name'): Problem {
  return new Problem('invalid_request', {
    detail: `Unknown issuer ${JSON.stringify(name)}.`,
    hint: Object.hasOwn(knownDirectories, name)
      ? `Try: vault issuer add --name ${name}`
      : didYouMean(name, known, `Use one of: ${known.join(', ')}.`),
    errors: [{ path, message: `unknown issuer ${JSON.stringify(name)}` }],
  });
}

/** A clause as a sentence: capitalized, with a full stop. */
export function sentence(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`;
}

/** Throws `invalid_request` if the fallback is the issuer itself. */
export function refuseSameFallback(issuer: Pick<IssuerRow, 'id' | 'name'>, fallbackId: number | null): void {
  if (fallbackId !== issuer.id) return;
  const message = `issuer ${issuer.name} cannot be its own fallback`;
  throw new Problem('invalid_request', {
    detail: sentence(message),
    hint: 'Choose another issuer with --fallback-issuer, or none.',
    errors: [{ path: 'fallback_issuer', message }],
  });
}

/** Settings that only the private CA issues. */
const privateSettings = ['usage', 'uris', 'emails', 'subject'] as const;

/** Throws `invalid_request` for a certificate that this issuer cannot issue. */
export function refuseUnsuitable(
  issuer: Pick<IssuerRow, 'name' | 'type'>,
  wanted: { readonly key_type?: string | undefined } & Partial<Omit<CreateCertificateInput, 'key_type'>>,
): void {
  const refuse = (path: string, message: string) =>
    new Problem('invalid_request', { detail: sentence(message), errors: [{ path, message }] });
  const { domains = [], uris = [], emails = [] } = wanted;
  if (domains.length + uris.length + emails.length === 0 && wanted.subject === undefined) {
    throw refuse('domains', 'at least one domain is required');
  }
  if (uris.length > 1 && uris.some(isSpiffe)) {
    throw refuse('uris', 'a SPIFFE ID is the only URI of its certificate');
  }
  if (issuer.type !== 'acme') {
    if (wanted.challenge != null)
      throw refuse('challenge', `issuer ${issuer.name} is not an ACME CA and does not support challenges`);
    return;
  }
  const extra = privateSettings.find((setting) => wanted[setting] !== undefined);
  if (extra !== undefined) {
    throw refuse(
      extra,
      `issuer ${issuer.name} is an ACME CA and does not support ${extra}; use the private CA`,
    );
  }
  if (domains.length === 0) throw refuse('domains', 'at least one domain is required');
  if (wanted.key_type === 'ed25519') {
    throw refuse('key_type', 'ACME CAs do not issue certificates for Ed25519 keys; use ec256, ec384 or RSA');
  }
  if (wanted.lifetime !== undefined) {
    throw refuse('lifetime', `issuer ${issuer.name} chooses the lifetime itself; choose a profile instead`);
  }
  const wildcard = wanted.domains?.find((domain) => domain.startsWith('*.'));
  if (wildcard !== undefined && wanted.challenge != null && !wanted.challenge.startsWith('dns-')) {
    throw refuse('challenge', `${wildcard} can only be validated with dns-01`);
  }
  const address = wanted.domains?.find((domain) => isAddress(domain));
  if (address !== undefined && wanted.challenge?.startsWith('dns-') === true) {
    throw refuse('challenge', `${address} can only be validated with http-01 or tls-alpn-01`);
  }
}

/**
 * Throws `invalid_request` if the fallback cannot issue this key type or these names. It ignores other settings that it
 * does not support.
 */
export function refuseUnsuitableFallback(
  fallback: Pick<IssuerRow, 'name' | 'type'> | undefined,
  wanted: LeafSettings & { readonly key_type?: string | undefined },
): void {
  if (fallback?.type !== 'acme') return;
  const extra = privateSettings.find((setting) => wanted[setting] !== undefined);
  if (extra !== undefined) {
    const message = `fallback issuer ${fallback.name} is an ACME CA and does not support ${extra}`;
    throw new Problem('invalid_request', {
      detail: sentence(message),
      errors: [{ path: 'fallback_issuer', message }],
    });
  }
  if (wanted.key_type !== 'ed25519') return;
  const message = `fallback issuer ${fallback.name} is an ACME CA, and ACME CAs do not issue certificates for Ed25519 keys`;
  throw new Problem('invalid_request', {
    detail: sentence(message),
    errors: [{ path: 'fallback_issuer', message }],
  });
}

/** Throws OperatorError if an issuer has a name that reads the same. */
export async function refuseTakenIssuerName(reader: Reader, name: string): Promise<void> {
  const taken = alikeName(await listIssuers(reader), name);
  if (taken === undefined) return;
  throw new OperatorError(`an issuer named ${taken} already exists`, {
    hint: 'Choose another name, or change it with "vault issuer update".',
  });
}

/**
 * The type of new keys for certificates of an issuer, with a profile of it, that are created without one; `reader` may
 * know neither.
 */
export async function issuerKeyType(reader: Reader, issuer: string, profile?: string): Promise<KeyType> {
  const row = await findIssuer(reader, issuer);
  if (row === undefined || row.type === 'acme') return defaultKeyType;
  const found = profile === undefined ? undefined : await findProfile(reader, row.id, profile);
  const [ofProfile] = found === undefined ? [] : profileIn(issuer, found).keyTypes;
  return ofProfile ?? (await settingsOfCa(reader, row.id)).keyType;
}

/**
 * Throws `invalid_request` for a fallback beside a profile of a private CA: the fallback does not know the profile, and
 * would issue what it forbids.
 */
export function refuseProfileFallback(
  issuer: Pick<IssuerRow, 'name' | 'type'>,
  profile: string | null | undefined,
  fallback: Pick<IssuerRow, 'name'> | undefined,
): void {
  if (issuer.type === 'acme' || profile == null || fallback === undefined) return;
  const message = `a certificate with profile ${profile} of issuer ${issuer.name} has no fallback issuer, because ${fallback.name} does not have this profile`;
  throw new Problem('invalid_request', {
    detail: sentence(message),
    errors: [{ path: 'fallback_issuer', message }],
  });
}

/** Throws `invalid_request` if the issuer is a private CA that does not permit one of the names. */
export async function refuseUnpermitted(
  reader: Reader,
  issuer: Pick<IssuerRow, 'id' | 'name' | 'type'>,
  names: CertifiedNames,
): Promise<void> {
  if (issuer.type === 'acme') return;
  refuseForbidden(issuer.name, await settingsOfCa(reader, issuer.id), names);
  await refuseByCompany(reader, issuer, names);
}
