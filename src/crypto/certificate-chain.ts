/** Which certificates vouch for which, and which key is behind them. */
import { type KeyObject, sign, verify, type X509Certificate } from 'node:crypto';
import { isSelfSigned, isSignedBy } from './certificate-facts.ts';

/**
 * The intermediates of a leaf, upwards and without the self-signed root; of several issuers one that is valid at `now`
 * (UTC milliseconds) comes first, then the order given. `top` is where it ends: the root where it was given, else the
 * last one whose issuer is missing, which may be the leaf itself.
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
 * Whether what the key signs verifies with the certificate. A damaged private key can still carry the public half that
 * the certificate has, so comparing the halves is not enough.
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

/** RFC 5280 §6.1.3: names, extensions and the signature have to agree. */
function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && isSignedBy(certificate, issuer);
}

function isValidAt({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return validFromDate.getTime() <= now && now <= validToDate.getTime();
}
