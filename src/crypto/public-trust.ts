/** Whether strangers trust a certificate: browsers are told to insist on HTTPS only where they can reach it for sure. */
import { X509Certificate } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { chainFrom } from './certificate-chain.ts';
import { isSignedBy } from './certificate-facts.ts';

/**
 * Whether the leaf is signed, by way of the intermediates, by one of the roots (PEM), and all are valid at `now` (UTC
 * milliseconds). The roots are those that Node brings, which are Mozilla's, never those of this machine.
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
