/**
 * Whether a certificate is publicly trusted: browsers get HSTS only if they can reach the vault over HTTPS for certain.
 */
import { X509Certificate } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { chainFrom } from './certificate-chain.ts';
import { isSignedBy } from './certificate-facts.ts';

/**
 * Whether one of the roots (PEM) signed the leaf, through the intermediates, and all of them are valid at `now` (UTC
 * milliseconds). The roots are those built into Node, which come from Mozilla, never those of this host.
 */
export function isPubliclyTrusted(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  now: number,
  roots: readonly string[] = rootCertificates,
): boolean {
  const { chain, top } = chainFrom(leaf, others, now);
  if (![leaf, ...chain].every((certificate) => isValidAt(certificate, now))) return false;
  return roots.some((pem) => {
    const root = new X509Certificate(pem);
    if (!isValidAt(root, now)) return false;
    return root.raw.equals(top.raw) ? top !== leaf : top.checkIssued(root) && isSignedBy(top, root);
  });
}

function isValidAt({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return validFromDate.getTime() <= now && now <= validToDate.getTime();
}
