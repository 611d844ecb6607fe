/** What clients change in the authorizations of their orders: they give one up, or ask for its validation. */
import { toJson } from '../../../base/json.ts';
import {
  type AcmeClientOrderRow,
  updateClientOrder,
} from '../../../db/tables/acme-server/acme-client-orders.ts';
import type { TimedContext } from '../../contexts.ts';
import type { AcmeCaller } from '../accounts/callers.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { storeNonce } from '../protocol/nonces.ts';
import { authorizationsOf, type StoredAuthorization, type StoredChallenge } from './authorizations.ts';
import { nothingHere } from './orders.ts';

/** The authorization at this position of an order. Throws the same as for an unknown order. */
export function requireAuthorization(
  order: AcmeClientOrderRow,
  position: number | undefined,
): StoredAuthorization {
  const found = position === undefined ? undefined : authorizationsOf(order)[position];
  if (found === undefined) throw nothingHere();
  return found;
}

/** The challenge of this type of an authorization. Throws the same as for an unknown order. */
export function requireChallenge({ challenges }: StoredAuthorization, type: string): StoredChallenge {
  const found = challenges.find((challenge) => challenge.type === type);
  if (found === undefined) throw nothingHere();
  return found;
}

/**
 * Gives up an authorization (RFC 8555 §7.5.2), and with it an order that is not finalized. Returns the authorization.
 */
export async function deactivateAuthorization(
  vault: TimedContext,
  { nonce }: AcmeCaller,
  order: AcmeClientOrderRow,
  position: number,
): Promise<StoredAuthorization> {
  const authorization = requireAuthorization(order, position);
  if (authorization.status === 'deactivated') return authorization;
  if (order.status !== 'pending' && order.status !== 'ready') {
    throw new AcmeProblem(
      'malformed',
      `The order is ${order.status}; its authorizations cannot be deactivated.`,
    );
  }
  const changed = { ...authorization, status: 'deactivated' as const };
  const authorizations = toJson(authorizationsOf(order).with(position, changed));
  const changes = { authorizations, status: 'invalid' as const, finished_at: vault.world.now() };
  await vault.db.write(async (writer) => {
    await storeNonce(writer, nonce);
    if (!(await updateClientOrder(writer, order, changes))) {
      throw new AcmeProblem('malformed', 'The order was changed meanwhile; read it again.');
    }
  });
  return changed;
}
