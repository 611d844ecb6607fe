/** Which challenge to answer for an authorization: what the certificate asks for, else what is configured and offered. */
import type { AcmeAuthorization, AcmeChallenge } from '../../acme/acme-types.ts';
import { dns01Value } from '../../acme/challenge-answers.ts';
import type { ChallengeType } from '../../base/challenge-type.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { ZoneServers } from '../../dns/resolver/zone-servers.ts';
import type { Attempt } from './attempt.ts';
import { type Place, placeOf, zoneServers } from './dns-records.ts';
import type { ProofContext } from './issuance-contexts.ts';

export type ChosenProof = {
  readonly challenge: AcmeChallenge;
  /** Where the record goes, for dns-01. */
  readonly place: Place | undefined;
  /** What the TXT record holds, for a key authorization; null where there is no record. */
  readonly recordValue: (keyAuthorization: string) => string | null;
};

/**
 * The challenge to answer. Without a wish: dns-01 where a DNS provider has the zone, else http-01; for a wildcard dns-01
 * alone. Throws OperatorError that says what is missing.
 */
export async function chooseProof(
  vault: ProofContext,
  { certificate, signal }: Attempt,
  { identifier, wildcard, challenges }: AcmeAuthorization,
  servers: ZoneServers = zoneServers(vault),
): Promise<ChosenProof> {
  const name = wildcard ? `*.${identifier.value}` : identifier.value;
  const wish = certificate.challenge as ChallengeType | null;
  const place =
    identifier.type === 'dns' && (wish === null || wish === 'dns-01')
      ? await placeOf(
          vault,
          identifier.value,
          signal,
          servers,
          wildcard || wish !== null ? 'dns-01' : 'any challenge',
        )
      : undefined;
  const offered = new Map(challenges.map((challenge) => [challenge.type, challenge]));
  const candidates = wish === null ? usualTypes(wildcard, place !== undefined) : [wish];
  const type = candidates.find((candidate) => offered.has(candidate));
  const challenge = type && offered.get(type);
  if (challenge === undefined) {
    throw new OperatorError(
      `the CA offers no usable way to prove control of ${name}: it offers ${[...offered.keys()].join(', ') || 'none'}, ` +
        `and ${candidates.join(' or ')} is wanted`,
      { hint: 'Choose another with "vault certificate update --challenge".' },
    );
  }
  if (type === 'dns-persist-01' && !vault.allowsDrafts) {
    throw new OperatorError('dns-persist-01 is still a draft', {
      hint: 'Allow it with the setting --acme-drafts of "vault serve", or choose another challenge.',
    });
  }
  if (type !== 'dns-01') return { challenge, place: undefined, recordValue: () => null };
  if (place === undefined) {
    throw new OperatorError(`no DNS provider has a zone for ${name}, which only dns-01 can prove`, {
      hint: 'Add one with "vault dns-provider add".',
    });
  }
  return { challenge, place, recordValue: dns01Value };
}

function usualTypes(wildcard: boolean, hasPlace: boolean): ChallengeType[] {
  if (wildcard) return ['dns-01'];
  return hasPlace ? ['dns-01', 'http-01'] : ['http-01', 'tls-alpn-01'];
}
