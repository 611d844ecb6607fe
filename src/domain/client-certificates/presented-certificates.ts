/**
 * Checks the certificate that a client presents against the one that its API key is bound to. TLS has proven that the
 * client holds the private key of it; nothing else is taken from TLS, and each request is checked again, so that
 * revocations count immediately, also on open connections and in resumed sessions.
 */
import { createPublicKey, X509Certificate } from 'node:crypto';
import { publicKeyOf } from '../../crypto/key-pair.ts';
import { findPresentedVersion } from '../../db/tables/access/client-certificates.ts';
import {
  type CaCertificateRow,
  findCaCertificateById,
  findSameCaCertificate,
} from '../../db/tables/issuance/ca-certificates.ts';
import { isOnCrl } from '../../db/tables/issuance/revoked-certificates.ts';
import { FreshCache, type Freshness } from '../cache/freshness.ts';
import type { SecretsContext } from '../contexts.ts';
import { authority, holdsKey } from '../private-ca/authorities.ts';

/** The certificate that a key is bound to; the key works only with one of its versions. */
export type BoundCertificate = { readonly id: number; readonly name: string };

/** Why a presented certificate does not serve. `other`: it is no version of the bound certificate. */
export type CertificateFault = 'other' | 'not valid yet' | 'expired' | 'revoked' | 'usage';

/** What does not change until the database does. */
type Judgment = {
  readonly notBefore: number;
  readonly notAfter: number;
  readonly fault?: 'revoked' | 'usage';
};

const cachedJudgments = 10_000;

/** RFC 5280 §4.2.1.12: id-kp-clientAuth. */
const clientAuth = '1.3.6.1.5.5.7.3.2';

export class PresentedCertificates {
  readonly #vault: SecretsContext;
  readonly #judged: FreshCache<string, Judgment>;

  constructor(vault: SecretsContext & { readonly freshness: Freshness }) {
    this.#vault = vault;
    this.#judged = new FreshCache(vault.freshness, cachedJudgments);
  }

  /**
   * Why this certificate does not serve for a key that is bound to `bound`; undefined if it does. Call
   * `freshness.look` first.
   */
  async faultOf(
    bound: BoundCertificate,
    certificate: X509Certificate,
  ): Promise<CertificateFault | undefined> {
    const key = `${bound.id} ${bound.name} ${certificate.fingerprint256}`;
    const judgment = await this.#judged.get(key, () => judge(this.#vault, bound, certificate));
    if (judgment === undefined) return 'other';
    const now = this.#vault.world.now();
    if (now < judgment.notBefore) return 'not valid yet';
    return now > judgment.notAfter ? 'expired' : judgment.fault;
  }
}

/**
 * Undefined unless the certificate is a version of the bound one and an intermediate of a private CA signed it. The
 * signature is verified with the public key of the sealed private key, and not with a stored certificate, which an
 * attacker with write access to the database could replace.
 */
async function judge(
  vault: SecretsContext,
  bound: BoundCertificate,
  certificate: X509Certificate,
): Promise<Judgment | undefined> {
  const { reader } = vault.db;
  // Nothing else is read of a certificate that the vault does not know.
  const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
  const version = await findPresentedVersion(reader, bound, fingerprint);
  // The first certificate of the chain is that of the issuer.
  if (version === undefined || version.chain_pem === '') return undefined;
  const issuer = await findSameCaCertificate(reader, new X509Certificate(version.chain_pem).raw);
  if (issuer?.role !== 'intermediate' || !holdsKey(issuer) || !isSignedBy(vault, issuer, certificate)) {
    return undefined;
  }
  const root = await findCaCertificateById(reader, issuer.signer_id ?? 0);
  if (root === undefined) return undefined;
  const isRevoked =
    version.revoked_at !== null || (await isOnCrl(reader, issuer.id, certificate.serialNumber));
  const isForClients = certificate.keyUsage?.includes(clientAuth) === true;
  return {
    notBefore: certificate.validFromDate.getTime(),
    // No longer than those above it.
    notAfter: Math.min(certificate.validToDate.getTime(), issuer.not_after, root.not_after),
    ...(isRevoked ? { fault: 'revoked' } : !isForClients && { fault: 'usage' }),
  };
}

function isSignedBy(vault: SecretsContext, issuer: CaCertificateRow, certificate: X509Certificate): boolean {
  const key = publicKeyOf(authority(vault, issuer).privateKey);
  return certificate.verify(createPublicKey({ key, format: 'der', type: 'spki' }));
}
