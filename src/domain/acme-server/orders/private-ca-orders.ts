/** Orders at a private CA: what the CA and its profiles permit, in terms of ACME. */

import type { Identifier } from '../../../base/identifier.ts';
import { Problem } from '../../../base/problem.ts';
import type { Reader } from '../../../db/database.ts';
import type { IssuerRow } from '../../../db/tables/issuance/issuers.ts';
import { settingsOfCa } from '../../private-ca/ca-settings.ts';
import { refuseForbidden } from '../../private-ca/permitted-names.ts';
import { inProfile } from '../../private-ca/profile-rules.ts';
import { requireProfile } from '../../private-ca/profile-settings.ts';
import { AcmeProblem, type AcmeProblemType } from '../protocol/acme-problem.ts';

/**
 * How long a certificate with these names may be valid, in milliseconds. Throws `invalidProfile` for an unknown
 * profile, and `rejectedIdentifier` for names that the CA or the profile does not permit.
 */
export async function longestLifetime(
  reader: Reader,
  issuer: IssuerRow,
  identifiers: readonly Identifier[],
  profileName: string | undefined,
): Promise<number> {
  const settings = await settingsOfCa(reader, issuer.id);
  try {
    refuseForbidden(issuer.name, settings, { domains: identifiers });
    if (profileName === undefined) return settings.lifetime;
    const profile = await requireProfile(reader, issuer, profileName);
    inProfile(profile, { domains: identifiers }, settings.lifetime);
    return profile.maxLifetime ?? Math.max(profile.lifetime ?? 0, settings.lifetime);
  } catch (error) {
    throw inTermsOfAcme(error);
  }
}

/** By the part of the input that a private CA refuses. */
const types: Readonly<Record<string, AcmeProblemType>> = {
  domains: 'rejectedIdentifier',
  profile: 'invalidProfile',
  key_type: 'badPublicKey',
};

/** The error of a private CA as a problem of ACME; other errors as they are. */
export function inTermsOfAcme(error: unknown): unknown {
  if (!(error instanceof Problem) || error.code !== 'invalid_request') return error;
  const [first] = error.errors;
  return new AcmeProblem(types[first?.path ?? ''] ?? 'malformed', error.message, { cause: error });
}
