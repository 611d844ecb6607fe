/**
 * Chooses the challenge for an authorization: the one set on the certificate, or one that is configured and offered.
 */
import type { AcmeAuthorization, AcmeChallenge } from '../../acme/acme-types.ts';
import { dns01Value } from '../../acme/challenge-answers.ts';
import type { ChallengeType } from '../../base/challenge-type.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { ZoneServers } from '../../dns/resolver/zone-servers.ts';
import { type Place, placeOf, zoneServers } from '../dns-providers/dns-records.ts';
import type { ProofContext } from '../issuance-contexts.ts';
import type { OrderProgress } from './order-progress.ts';

export type ChosenProof = {
  readonly challenge: AcmeChallenge;
  /** The provider and name of the record, for dns-01. */
  readonly place: Place | undefined;
  /** The value of the TXT record for a key authorization; null if there is no record. */
  readonly recordValue: (keyAuthorization: string) => string | null;
};

/**
 * The challenge to answer. If the certificate does not set one: dns-01 if a DNS provider has the zone, otherwise
 * http-01; for a wildcard only dns-01. Throws OperatorError that names what is missing.
 */
export async function chooseProof(
  vault: ProofContext,
  { certificate, signal }: Pick<OrderProgress, 'certificate' | 'signal'>,
  { identifier, wildcard, challenges }: AcmeAuthorization,
  servers: ZoneServers = zoneServers(vault),
): Promise<ChosenProof> {
  const name = wildcard ? `*.${identifier.value}` : identifier.value;
  const preferred = certificate.challenge as ChallengeType | null;
  const place =
    identifier.type === 'dns' && (preferred === null || preferred === 'dns-01')
      ? await placeOf(
          vault,
          identifier.value,
          signal,
          servers,
          wildcard || preferred !== null ? 'dns-01' : 'any challenge',
        )
      : undefined;
  const offered = new Map(challenges.map((challenge) => [challenge.type, challenge]));
  const candidates = preferred === null ? defaultTypes(wildcard, place !== undefined) : [preferred];
  const type = candidates.find((candidate) => offered.has(candidate));
  const challenge = type && offered.get(type);
  if (challenge === undefined) {
    throw new OperatorError(
      `no usable challenge for ${name}: the CA offers ${[...offered.keys()].join(', ') || 'none'}, ` +
        `but the certificate needs ${candidates.join(' or ')}`,
      { hint: 'Choose another challenge with "vault certificate update --challenge".' },
    );
  }
  if (type === 'dns-persist-01' && !vault.allowsDrafts) {
    throw new OperatorError('dns-persist-01 is still a draft', {
      hint: 'Allow it with --acme-drafts of "vault serve", or choose another challenge.',
    });
  }
  if (type !== 'dns-01') return { challenge, place: undefined, recordValue: () => null };
  if (place === undefined) {
    throw new OperatorError(`no DNS provider has a zone for ${name}, which requires dns-01`, {
      hint: 'Add one with "vault dns-provider add".',
    });
  }
  return { challenge, place, recordValue: dns01Value };
}

function defaultTypes(wildcard: boolean, hasPlace: boolean): ChallengeType[] {
  if (wildcard) return ['dns-01'];
  return hasPlace ? ['dns-01', 'http-01'] : ['http-01', 'tls-alpn-01'];
}
