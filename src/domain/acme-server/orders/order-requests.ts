/** The CSR of an order (RFC 8555 §7.4): it must ask for the names of the order, with a key that a CA may certify. */
import { RequestRefused } from '../../../crypto/x509/request-refused.ts';
import { readRequestDer, type SigningRequest } from '../../../crypto/x509/signing-request.ts';
import type { Reader } from '../../../db/database.ts';
import { findClientAccountByKey } from '../../../db/tables/acme-server/acme-client-accounts.ts';
import type { AcmeClientOrderRow } from '../../../db/tables/acme-server/acme-client-orders.ts';
import { readAccountKey } from '../protocol/account-keys.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { fromBase64Url } from '../protocol/signed-messages.ts';
import { identifiersOf } from './orders.ts';

/** The CSR in base64url of DER. Throws `badCSR`, and `badPublicKey` for a key that is not accepted. */
export async function readOrderRequest(
  reader: Reader,
  issuerId: number,
  order: AcmeClientOrderRow,
  encoded: string,
): Promise<SigningRequest> {
  const der = fromBase64Url(encoded);
  if (der === undefined) throw new AcmeProblem('badCSR', 'The CSR is not base64url without padding.');
  const request = readDer(der);
  const names = identifiersOf(order);
  const missing = names.filter((name) => !request.domains.includes(name));
  const extra = [
    ...request.domains.filter((name) => !names.includes(name)),
    ...request.emails,
    ...request.uris,
  ];
  if (missing.length + extra.length > 0) {
    const parts = [
      ...(missing.length > 0 ? [`it lacks ${missing.slice(0, 5).join(', ')}`] : []),
      ...(extra.length > 0 ? [`only it has ${extra.slice(0, 5).join(', ')}`] : []),
    ];
    throw new AcmeProblem(
      'badCSR',
      `The names of the CSR are not those of the order: ${parts.join(', and ')}.`,
    );
  }
  await refuseAccountKey(reader, issuerId, request);
  return request;
}

function readDer(der: Buffer): SigningRequest {
  try {
    return readRequestDer(der);
  } catch (error) {
    if (!(error instanceof RequestRefused)) throw error;
    const type = error.isAboutKey ? 'badPublicKey' : 'badCSR';
    throw new AcmeProblem(type, `The CSR ${error.message}.`, { cause: error });
  }
}

/** A key that signs requests must not be in a certificate (§11.1). */
async function refuseAccountKey(reader: Reader, issuerId: number, { jwk }: SigningRequest): Promise<void> {
  const { thumbprint } = readAccountKey(jwk);
  if ((await findClientAccountByKey(reader, issuerId, thumbprint)) === undefined) return;
  throw new AcmeProblem(
    'badCSR',
    'The key of the CSR is that of an account; generate another one for the certificate.',
  );
}
