/**
 * Issues the certificate of a finalized order. It leaves the vault only once it is stored together with its audit
 * event.
 */
import { OperatorError } from '../../../base/operator-error.ts';
import { StorageError } from '../../../base/storage-error.ts';
import type { SigningRequest } from '../../../crypto/x509/signing-request.ts';
import {
  type AcmeClientOrderRow,
  findClientOrder,
  updateClientOrder,
} from '../../../db/tables/acme-server/acme-client-orders.ts';
import { together } from '../../../db/together.ts';
import type { LogContext, SecretsContext } from '../../contexts.ts';
import type { Meter } from '../../health/meter.ts';
import { type IssuedCertificate, issueFromPrivateCa } from '../../private-ca/leaf-issuance.ts';
import type { AcmeCaller } from '../accounts/callers.ts';
import { storeIssued } from '../certificates/owned-certificates.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { storeNonce } from '../protocol/nonces.ts';
import { identifiersOf } from './orders.ts';
import { inTermsOfAcme } from './private-ca-orders.ts';

/** Issues, logs and counts. */
export type IssuanceContext = SecretsContext & LogContext & { readonly meter: Meter };

/** An order that is ready, and the checked CSR that finalizes it. */
export type FinalizedOrder = {
  readonly caller: AcmeCaller;
  readonly order: AcmeClientOrderRow;
  readonly request: SigningRequest;
};

/**
 * Issues the certificate of an order that is ready, and returns the order as it is afterwards: `valid`. If the process
 * ends before that is stored, the order is still ready and the client finalizes it again. Throws what the CA refuses,
 * as AcmeProblem.
 */
export async function issueOrder(
  vault: IssuanceContext,
  finalized: FinalizedOrder,
): Promise<AcmeClientOrderRow> {
  const { caller, order, request } = finalized;
  const issued = await issueByOrder(vault, finalized);
  const { client, issuer, actor, nonce } = caller;
  try {
    const changes = await vault.db.write(async (writer) => {
      const [{ certificateId, version }] = await together([
        storeIssued(vault, writer, {
          ...{ client, issuer, actor, csr: request.der },
          identifiers: identifiersOf(order),
          profile: order.profile ?? undefined,
          material: { source: 'local-ca', ...issued, privateKey: undefined },
        }),
        storeNonce(writer, nonce),
      ]);
      const valid = {
        ...{ status: 'valid' as const, finished_at: vault.world.now(), csr: request.der },
        ...{ certificate_id: certificateId, version },
      };
      if (!(await updateClientOrder(writer, order, valid))) throw new FinalizedElsewhere();
      return valid;
    });
    const by = { client: client.name, issuer: issuer.name };
    vault.meter.ordered('issued', by, vault.world.now() - order.created_at);
    return { ...order, ...changes };
  } catch (error) {
    if (!(error instanceof FinalizedElsewhere)) throw error;
    // The certificate of this process leaves it nowhere; the client gets the stored one.
    const stored = await findClientOrder(vault.db.reader, order.id);
    if (stored === undefined) throw new Error('the order vanished', { cause: error });
    return stored;
  }
}

/** Another process finalized the order meanwhile. */
class FinalizedElsewhere extends Error {}

async function issueByOrder(
  vault: SecretsContext & LogContext,
  { caller: { issuer }, order, request }: FinalizedOrder,
): Promise<IssuedCertificate> {
  const now = vault.world.now();
  const { not_before: notBefore, not_after: notAfter } = order;
  const start = Math.max(notBefore ?? now, now);
  if (notAfter !== null && notAfter <= start) {
    throw new AcmeProblem('malformed', 'The notAfter of the order has passed; create a new order.');
  }
  try {
    return await issueFromPrivateCa(vault, issuer, {
      identifiers: identifiersOf(order),
      publicKey: request.publicKey,
      profile: order.profile ?? undefined,
      lifetime: notAfter === null ? undefined : notAfter - start,
      ...(notBefore !== null && { notBefore }),
      ...(notAfter !== null && { notAfter }),
    });
  } catch (error) {
    if (!(error instanceof OperatorError) || error instanceof StorageError) throw inTermsOfAcme(error);
    vault.log.error({ err: error, issuer: issuer.name }, 'ACME order failed: private CA cannot issue');
    throw new AcmeProblem(
      'serverInternal',
      `Issuer ${issuer.name} cannot issue at present: ${error.message}.`,
      {
        cause: error,
      },
    );
  }
}
