/**
 * Confinement to profiles of private CAs: who is confined may have certificates issued only with one of the profiles in
 * its list. People with the role operator use it, and API keys that have certificates issued. It grants nothing.
 */
import { type Json, parseJson, toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import { includesRole, type Role } from '../../base/role.ts';
import type { Scope } from '../../base/scope.ts';
import type { Reader } from '../../db/database.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import { findProfile } from '../../db/tables/issuance/issuance-profiles.ts';
import { findIssuer, findIssuerById, type IssuerRow } from '../../db/tables/issuance/issuers.ts';

/** The profiles (`issuer/profile`) that a caller is confined to. */
export type Confinement = 'any' | ReadonlySet<string>;

/** Throws if a certificate may not be issued with this profile (`issuer/profile`; undefined for none). */
export type ProfileCheck = (profile: string | undefined) => void;

/** For those who are not confined. */
export const anyProfile: ProfileCheck = () => undefined;

/** What is stored: a JSON list, or null for none. */
export function confinementIn(stored: Json<string[]> | null): Confinement {
  return stored === null ? 'any' : new Set(parseJson(stored));
}

/** The stored form of a list; an empty one confines to nothing. */
export function confinementText(profiles: readonly string[]): Json<string[]> | null {
  return profiles.length === 0 ? null : toJson(profiles);
}

/** The profiles of a confinement as lists show them; empty for any. */
export function confinementList(confinement: Confinement): string[] {
  return confinement === 'any' ? [] : [...confinement];
}

/** `issuer/profile` of a certificate; undefined if it has no profile of a private CA. */
export async function profileOf(
  reader: Reader,
  { issuer_id, profile }: Pick<CertificateRow, 'issuer_id' | 'profile'>,
): Promise<string | undefined> {
  if (issuer_id === null || profile === null) return undefined;
  return profileAt(await findIssuerById(reader, issuer_id), profile);
}

/** `issuer/profile` of a profile of this issuer; undefined if the issuer is no private CA. */
export function profileAt(
  issuer: Pick<IssuerRow, 'name' | 'type'> | undefined,
  profile: string | null | undefined,
): string | undefined {
  if (issuer === undefined || issuer.type === 'acme' || profile == null) return undefined;
  return `${issuer.name}/${profile}`;
}

/** Who may be confined. */
type Confined = { readonly kind: 'api-key' | 'administrator'; readonly profiles: Confinement };

/** Throws `forbidden` for a certificate with another profile, or none. */
export function requireProfileWithin({ kind, profiles }: Confined, profile: string | undefined): void {
  if (profiles === 'any' || (profile !== undefined && profiles.has(profile))) return;
  const [who, hint] =
    kind === 'api-key'
      ? ['This API key', 'The profiles of a key are set with "vault api-key update --profile".']
      : ['You', 'The profiles of an administrator are set with "vault admin update --profile".'];
  throw new Problem('forbidden', {
    detail: `${who} may have certificates issued only with one of these profiles: ${[...profiles].join(', ')}.`,
    hint,
  });
}

/** Whether an API key with these rights may have certificates issued. */
export function canIssue({
  scopes,
  role,
}: {
  readonly scopes: readonly Scope[];
  readonly role: Role | null;
}): boolean {
  if (role !== null && includesRole(role, 'operator')) return true;
  return scopes.includes('certificates:sign') || scopes.includes('renewals:trigger');
}

/**
 * Throws `invalid_request` for profiles of a key that has no certificates issued, or whose role lets it have any
 * issued, and for unknown ones.
 */
export async function refuseUnfitProfiles(
  reader: Reader,
  rights: {
    readonly profiles: readonly string[];
    readonly scopes: readonly Scope[];
    readonly role: Role | null;
  },
): Promise<void> {
  if (rights.profiles.length === 0) return;
  refuseForAdmin(rights.role);
  if (!canIssue(rights)) {
    throw refused(
      'profiles confine keys that have certificates issued; the key has neither the role operator nor the scope certificates:sign or renewals:trigger',
    );
  }
  await refuseUnknown(reader, rights.profiles);
}

/** Throws `invalid_request` for profiles of a person whose role is not operator, and for unknown ones. */
export async function refuseUnfitProfilesOfPerson(
  reader: Reader,
  { role, profiles }: { readonly role: Role; readonly profiles: readonly string[] },
): Promise<void> {
  if (profiles.length === 0) return;
  refuseForAdmin(role);
  if (role !== 'operator') {
    throw refused(
      `the role ${role} has no certificates issued; only the role operator has profiles`,
      clearing,
    );
  }
  await refuseUnknown(reader, profiles);
}

function refuseForAdmin(role: Role | null): void {
  if (role !== 'admin') return;
  throw refused('the role admin may use every profile; use the role operator', clearing);
}

const clearing = 'To remove the profiles, add "--profile none", or "profiles": [] to the request.';

async function refuseUnknown(reader: Reader, profiles: readonly string[]): Promise<void> {
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

function refused(message: string, hint?: string): Problem {
  return new Problem('invalid_request', {
    detail: `${message.charAt(0).toUpperCase()}${message.slice(1)}.`,
    errors: [{ path: 'profiles', message }],
    ...(hint !== undefined && { hint }),
  });
}
