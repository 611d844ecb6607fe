/**
 * The challenges that are under way, for the listeners that a CA validates at; they come from the database, whichever
 * process has the order.
 */
import {
  type AcmeChallengeRow,
  findHttpChallenge,
  findTlsAlpnChallenge,
} from '../../db/tables/issuance/acme-challenges.ts';
import type { DatabaseContext } from '../contexts.ts';

/** A challenge and its answer, the key authorization (RFC 8555 §8.1). */
export type OpenChallenge = Pick<AcmeChallengeRow, 'id' | 'key_authorization'>;

/** The http-01 challenge with this token. */
export function openHttpChallenge(
  { db }: DatabaseContext,
  token: string,
): Promise<OpenChallenge | undefined> {
  return findHttpChallenge(db.reader, token);
}

/** The newest tls-alpn-01 challenge for this domain or address. */
export function openTlsAlpnChallenge(
  { db }: DatabaseContext,
  identifier: string,
): Promise<OpenChallenge | undefined> {
  return findTlsAlpnChallenge(db.reader, identifier);
}
