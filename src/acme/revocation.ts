/** Revocation (RFC 8555 §7.6). */
import type { Secret } from '../base/secret.ts';
import type { AcmeClient } from './acme-client.ts';
import { AcmeError } from './acme-error.ts';
import type { AcmeAccount } from './acme-types.ts';

/** Who may revoke: the account that holds the names, or whoever has the certificate's own key. */
export type Revoker = { readonly account: AcmeAccount } | { readonly privateKey: Secret };

/**
 * Revokes the certificate (DER) for a reason of RFC 5280 §5.3.1, a number. One that is revoked already is fine. Throws
 * AcmeError, such as `unauthorized` or `badRevocationReason`.
 */
export async function revokeCertificate(
  client: AcmeClient,
  signer: Revoker,
  leaf: Buffer,
  reason: number,
  signal: AbortSignal,
): Promise<void> {
  const { revokeCert } = await client.directory(signal);
  if (revokeCert === undefined) throw new AcmeError('protocol', 'the CA does not support revocation');
  const payload = { certificate: leaf.toString('base64url'), reason };
  try {
    await client.post(revokeCert, payload, 'account' in signer ? signer.account : signer, signal);
  } catch (error) {
    if (!(error instanceof AcmeError) || error.type !== 'alreadyRevoked') throw error;
  }
}
