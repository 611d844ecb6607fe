/** Revocation (RFC 8555 §7.6). */
import type { Secret } from '../base/secret.ts';
import type { AcmeClient } from './acme-client.ts';
import { AcmeError } from './acme-error.ts';
import type { AcmeAccount } from './acme-types.ts';

/** Who may revoke: the account that controls the names, or the key of the certificate. */
export type Revoker = { readonly account: AcmeAccount } | { readonly privateKey: Secret };

/**
 * Revokes the certificate (DER) with a reason code of RFC 5280 §5.3.1. An already revoked certificate counts as
 * success. Throws AcmeError, such as `unauthorized` or `badRevocationReason`.
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
