/** The profiles of private CAs as they are stored, and how a certificate finds its own. */
import { type Json, parseJsonOr, toJson } from '../../base/json.ts';
import { isKeyType, type KeyType } from '../../base/key-type.ts';
import type { Usage } from '../../base/leaf-names.ts';
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import {
  findProfile,
  type IssuanceProfileRow,
  listProfiles,
} from '../../db/tables/issuance/issuance-profiles.ts';
import { didYouMean } from '../closest-names.ts';

/** The kinds of names that a profile can tell apart. */
export const nameTypes = ['dns', 'ip', 'email', 'uri'] as const;

export type NameType = (typeof nameTypes)[number];

/** What is undefined, or empty, is open. */
export type ProfileSettings = {
  readonly usage: Usage | undefined;
  /** The first is that of new keys. */
  readonly keyTypes: readonly KeyType[];
  /** Of certificates that ask for none, in milliseconds. */
  readonly lifetime: number | undefined;
  readonly maxLifetime: number | undefined;
  /** Fields such as `O=Example` that each certificate has. */
  readonly subject: readonly string[];
  readonly nameTypes: readonly NameType[];
  /** Beside what the CA permits; both empty for all of that. */
  readonly permitDomains: readonly string[];
  readonly permitIps: readonly string[];
};

export type Profile = ProfileSettings & { readonly issuer: string; readonly name: string };

/** The profile of a row. */
export function profileIn(issuer: string, row: IssuanceProfileRow): Profile {
  return {
    issuer,
    name: row.name,
    usage: (row.usage ?? undefined) as Usage | undefined,
    keyTypes: parseJsonOr(row.key_types, []).filter(isKeyType),
    lifetime: row.lifetime ?? undefined,
    maxLifetime: row.max_lifetime ?? undefined,
    subject: parseJsonOr(row.subject, []),
    nameTypes: parseJsonOr(row.name_types, []),
    permitDomains: parseJsonOr(row.permit_domains, []),
    permitIps: parseJsonOr(row.permit_ips, []),
  };
}

/** The columns of these settings. */
export function profileColumns(
  settings: ProfileSettings,
): Omit<IssuanceProfileRow, 'issuer_id' | 'name' | 'created_at'> {
  return {
    usage: settings.usage ?? null,
    key_types: listText(settings.keyTypes),
    lifetime: settings.lifetime ?? null,
    max_lifetime: settings.maxLifetime ?? null,
    subject: listText(settings.subject),
    name_types: listText(settings.nameTypes),
    permit_domains: listText(settings.permitDomains),
    permit_ips: listText(settings.permitIps),
  };
}

type Ca = { readonly id: number; readonly name: string };

/** The profile of this name. Throws `invalid_request` at `profile` that suggests those of the issuer. */
export async function requireProfile(reader: Reader, issuer: Ca, name: string): Promise<Profile> {
  const row = await findProfile(reader, issuer.id, name);
  if (row !== undefined) return profileIn(issuer.name, row);
  const known = (await listProfiles(reader, issuer.id)).map((profile) => profile.name);
  throw unknownProfile(issuer.name, name, known);
}

/** The error for a profile that the issuer does not have. */
export function unknownProfile(issuer: string, name: string, known: readonly string[]): Problem {
  const message = `issuer ${issuer} has no profile ${JSON.stringify(name)}`;
  const otherwise =
    known.length === 0
      ? `Add it with "vault issuer profile add ${issuer} NAME", or remove the profile of the certificate.`
      : `Use one of: ${known.join(', ')}.`;
  return new Problem('invalid_request', {
    detail: `Issuer ${issuer} has no profile ${JSON.stringify(name)}.`,
    hint: didYouMean(name, known, otherwise),
    errors: [{ path: 'profile', message }],
  });
}

function listText<Entry>(list: readonly Entry[]): Json<Entry[]> | null {
  return list.length === 0 ? null : toJson(list);
}
