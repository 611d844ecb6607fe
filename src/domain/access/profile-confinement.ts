/**
 * Confinement to profiles of private CAs: who is confined may have certificates issued only with one of the profiles in
 * its list. API keys use it for the scope `certificates:sign`.
 */
import { type Json, parseJson, toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Scope } from '../../base/scope.ts';
import type { Reader } from '../../db/database.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import { findProfile } from '../../db/tables/issuance/issuance-profiles.ts';
import { findIssuer, findIssuerById } from '../../db/tables/issuance/issuers.ts';

/** The profiles (`issuer/profile`) that a caller is confined to. */
export type Confinement = 'any' | ReadonlySet<string>;

/** What is stored: a JSON list, or null for none. */
export function confinementIn(stored: Json<string[]> | null): Confinement {
  return stored === null ? 'any' : new Set(parseJson(stored));
}

/** The stored form of a list; an empty one confines to nothing. */
export function confinementText(profiles: readonly string[]): Json<string[]> | null {
  return profiles.length === 0 ? null : toJson(profiles);
}

/** `issuer/profile` of a certificate; undefined if it has no profile of a private CA. */
export async function profileOf(
  reader: Reader,
  { issuer_id, profile }: Pick<CertificateRow, 'issuer_id' | 'profile'>,
): Promise<string | undefined> {
  if (issuer_id === null || profile === null) return undefined;
  const issuer = await findIssuerById(reader, issuer_id);
  return issuer === undefined || issuer.type === 'acme' ? undefined : `${issuer.name}/${profile}`;
}

/** Throws `forbidden` for a certificate with another profile, or none. */
export function requireProfileWithin(confinement: Confinement, profile: string | undefined): void {
  if (confinement === 'any' || (profile !== undefined && confinement.has(profile))) return;
  throw new Problem('forbidden', {
    detail: `This API key may sign only certificates with one of these profiles: ${[...confinement].join(', ')}.`,
    hint: 'The profiles of a key are set with "vault api-key update --profile".',
  });
}

/** Throws `invalid_request` for profiles of a key that may not sign anyway, and for unknown ones. */
export async function refuseUnfitProfiles(
  reader: Reader,
  { profiles, scopes }: { readonly profiles: readonly string[]; readonly scopes: readonly Scope[] },
): Promise<void> {
  if (profiles.length === 0) return;
  if (!scopes.includes('certificates:sign')) {
    throw refused('profiles confine the scope certificates:sign, which the key does not have');
  }
  for (const reference of profiles) {
    const [name = '', profile = ''] = reference.split('/');
    const issuer = await findIssuer(reader, name);
    const isKnown =
      issuer !== undefined &&
      issuer.type !== 'acme' &&
      (await findProfile(reader, issuer.id, profile)) !== undefined;
    if (!isKnown) throw refused(`no private CA has the profile ${JSON.stringify(reference)}`);
  }
}

function refused(message: string): Problem {
  return new Problem('invalid_request', {
    detail: `${message.charAt(0).toUpperCase()}${message.slice(1)}.`,
    errors: [{ path: 'profiles', message }],
  });
}
