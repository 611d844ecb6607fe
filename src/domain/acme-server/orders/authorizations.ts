/**
 * Authorizations (RFC 8555 §7.1.4) as orders store them: one for each identifier, with its challenges. They are valid
 * at once for a client whose binding is the proof.
 */

import type { ChallengeType } from '../../../base/challenge-type.ts';
import { day } from '../../../base/duration.ts';
import { type Identifier, isAddress } from '../../../base/identifier.ts';
import { parseJson } from '../../../base/json.ts';
import type { OrderAuthorization, OrderChallenge } from '../../../db/schema/schema-acme-server.ts';
import type { AcmeClientOrderRow } from '../../../db/tables/acme-server/acme-client-orders.ts';
import type { WorldContext } from '../../contexts.ts';
import type { AcmeClient } from '../clients/client-access.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';

/** How long clients have to validate and finalize an order, and how long its authorizations are valid. */
export const orderLifetime = day;

/** A challenge as its order stores it. */
export type StoredChallenge = OrderChallenge;

/** An authorization as its order stores it. */
export type StoredAuthorization = OrderAuthorization;

const tokenSize = 32;

/**
 * The authorizations of a new order. Throws `rejectedIdentifier` for names that no challenge of the client can
 * validate.
 */
export function newAuthorizations(
  { world }: WorldContext,
  client: AcmeClient,
  identifiers: readonly Identifier[],
): StoredAuthorization[] {
  const now = world.now();
  const expires = now + orderLifetime;
  const isTrusted = client.validation.length === 0;
  const impossible = isTrusted
    ? []
    : identifiers.filter((identifier) => challengesFor(client, identifier).length === 0);
  if (impossible.length > 0) throw unvalidatable(client, impossible);
  return identifiers.map((identifier) => {
    const wildcard = identifier.startsWith('*.');
    const token = world.randomBytes(tokenSize).toString('base64url');
    const name = (wildcard ? identifier.slice(2) : identifier) as Identifier;
    if (!isTrusted) {
      const challenges = challengesFor(client, identifier).map((type) => ({
        type,
        token,
        status: 'pending' as const,
      }));
      return { identifier: name, wildcard, status: 'pending', expires, challenges };
    }
    // Clients look for a challenge that they know, and find that nothing is left to do.
    const type = wildcard ? 'dns-01' : 'http-01';
    const challenges = [{ type, token, status: 'valid' as const, validated: now } as const];
    return { identifier: name, wildcard, status: 'valid', expires, challenges };
  });
}

/**
 * The challenges that can validate an identifier: a wildcard is only in DNS (RFC 8555 §8.3), and an address never is
 * (RFC 8738 §4).
 */
function challengesFor({ validation }: AcmeClient, identifier: Identifier): ChallengeType[] {
  if (identifier.startsWith('*.')) return validation.filter((type) => type === 'dns-01');
  if (isAddress(identifier)) return validation.filter((type) => type !== 'dns-01');
  return [...validation];
}

function unvalidatable({ id, validation }: AcmeClient, identifiers: readonly Identifier[]): AcmeProblem {
  const detail = `ACME client ${id} validates names by ${validation.join(', ')}, which cannot validate`;
  return new AcmeProblem('rejectedIdentifier', `${detail} ${identifiers.slice(0, 10).join(', ')}.`, {
    subproblems: identifiers.map((identifier) => ({
      type: 'rejectedIdentifier',
      detail: `${detail} ${identifier}.`,
      identifier,
    })),
  });
}

/** The stored authorizations of an order. */
export function authorizationsOf({
  authorizations,
}: Pick<AcmeClientOrderRow, 'authorizations'>): StoredAuthorization[] {
  return parseJson(authorizations);
}

/** The status of an order that is not finalized yet, by its authorizations (RFC 8555 §7.1.6). */
export function statusBy(authorizations: readonly StoredAuthorization[]): 'pending' | 'ready' | 'invalid' {
  if (authorizations.every(({ status }) => status === 'valid')) return 'ready';
  return authorizations.every(({ status }) => status === 'valid' || status === 'pending')
    ? 'pending'
    : 'invalid';
}
