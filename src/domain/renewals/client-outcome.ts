/**
 * Passes the outcome of a renewal to the ACME client that ordered it: its order becomes valid, or invalid with the CA's
 * error. The client decides whether to order again, so the vault neither retries nor notifies.
 */
import { isIP } from 'node:net';
import { AcmeError } from '../../acme/acme-error.ts';
import type { AcmeProblem } from '../../acme/acme-types.ts';
import { toJson } from '../../base/json.ts';
import type { Writer } from '../../db/database.ts';
import type { OrderProblem } from '../../db/schema/schema-acme-server.ts';
import { updateWaitingOrders } from '../../db/tables/acme-server/upstream-orders.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';

import { type Actor, system } from '../audit/audit.ts';

/** Whether an ACME client ordered the certificate. */
export function isOrderedByClient({ acme_client_id }: Pick<CertificateRow, 'acme_client_id'>): boolean {
  return acme_client_id !== null;
}

/** The actor: the client that ordered it, or the vault itself. */
export function actorOfRenewal(
  certificate: Pick<CertificateRow, 'acme_client_id'>,
  { requested_by }: { readonly requested_by: string },
): Actor {
  return isOrderedByClient(certificate) ? { name: requested_by } : system;
}

/** Ends the orders that wait for the renewal as valid. */
export async function completeOrders(
  writer: Writer,
  renewalId: number,
  issued: { readonly certificateId: number; readonly version: number },
  now: number,
): Promise<void> {
  const { certificateId: certificate_id, version } = issued;
  await updateWaitingOrders(writer, renewalId, {
    status: 'valid',
    finished_at: now,
    certificate_id,
    version,
  });
}

/** Ends the orders that wait for the renewal as invalid. `problem` is a document (RFC 8555 §6.7). */
export async function failOrders(
  writer: Writer,
  renewalId: number,
  problem: OrderProblem,
  now: number,
): Promise<void> {
  const error = toJson(problem);
  await updateWaitingOrders(writer, renewalId, { status: 'invalid', finished_at: now, error });
}

/** An error for the client: that of the CA unchanged, for the vault's own only where to find it. */
export function problemForClient(error: unknown, renewalId: number): OrderProblem {
  if (error instanceof AcmeError) {
    const { problem } = error;
    return problem === undefined
      ? serverInternal(`The CA did not issue the certificate: ${error.message}`)
      : passedOn(problem);
  }
  return serverInternal(
    `The vault could not complete the order at the CA; its administrator finds the reason with renewal ${renewalId}.`,
  );
}

/** The problem if a change canceled the renewal. */
export function problemOfChange(reason: string): OrderProblem {
  return serverInternal(`The order was canceled: ${reason}. Create a new order.`);
}

function serverInternal(detail: string): OrderProblem {
  return { type: 'urn:ietf:params:acme:error:serverInternal', detail, status: 500 };
}

function passedOn({ type, detail, status, instance, subproblems }: AcmeProblem): OrderProblem {
  return {
    type,
    detail,
    ...(status !== undefined && { status }),
    ...(instance !== undefined && { instance }),
    ...(subproblems.length > 0 && {
      subproblems: subproblems.map(({ identifier, ...sub }) => ({
        ...sub,
        ...(identifier !== undefined && {
          identifier: { type: identifierType(identifier), value: identifier },
        }),
      })),
    }),
  };
}

function identifierType(identifier: string): 'dns' | 'ip' {
  return isIP(identifier) === 0 ? 'dns' : 'ip';
}
