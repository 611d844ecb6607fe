/** Chains of certificates: which certificate issued which, and which key belongs to them. */
import { type KeyObject, sign, verify, type X509Certificate } from 'node:crypto';
import { isSelfSigned, isSignedBy } from './certificate-facts.ts';

/**
 * The intermediates of a leaf, upwards and without the self-signed root. Among several issuers, one that is valid at
 * `now` (UTC milliseconds) comes first, then the order given. `top` is the last certificate: the root if present,
 * otherwise the last one whose issuer is missing, possibly the leaf itself.
 */
export function chainFrom(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  now: number,
): { chain: X509Certificate[]; top: X509Certificate } {
  const preferred = [...others].sort((a, b) => Number(isValidAt(b, now)) - Number(isValidAt(a, now)));
  const path = [leaf];
  let top = leaf;
  while (!isSelfSigned(top)) {
    const issued = top;
    const issuer = preferred.find((other) => !path.includes(other) && isIssuedBy(issued, other));
    if (issuer === undefined) break;
    path.push(issuer);
    top = issuer;
  }
  return { chain: path.filter((one) => one !== leaf && !isSelfSigned(one)), top };
}

/**
 * Whether the certificate verifies what the key signs. A damaged private key can still contain the public half of the
 * certificate, so comparing public keys is not enough.
 */
export function signsFor(privateKey: KeyObject, { publicKey }: X509Certificate): boolean {
  const message = Buffer.from('proof of possession');
  try {
    return verify(null, message, publicKey, sign(null, message, privateKey));
  } catch {
    // OpenSSL refuses to sign with some damaged keys.
    return false;
  }
}

/** RFC 5280 §6.1.3: names, extensions and the signature must match. */
function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && isSignedBy(certificate, issuer);
}

function isValidAt({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return validFromDate.getTime() <= now && now <= validToDate.getTime();
}
