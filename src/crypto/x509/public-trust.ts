/**
 * Whether a certificate is publicly trusted: browsers get HSTS only if they can reach the vault over HTTPS for certain.
 */
import { X509Certificate } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { chainFrom } from './certificate-chain.ts';
import { isSignedBy, titleOf } from './certificate-facts.ts';

/** Whether `publicRootOf` finds a root. */
export function isPubliclyTrusted(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  now: number,
  roots: readonly string[] = rootCertificates,
): boolean {
  return publicRootOf(leaf, others, now, roots) !== undefined;
}

/**
 * The name of one of the roots (PEM) that signed the leaf, through the intermediates, and all of them are valid at
 * `now` (UTC milliseconds). The roots are those built into Node, which come from Mozilla, never those of this host.
 */
export function publicRootOf(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  now: number,
  roots: readonly string[] = rootCertificates,
): string | undefined {
  const { chain, top } = chainFrom(leaf, others, now);
  if (![leaf, ...chain].every((certificate) => isValidAt(certificate, now))) return undefined;
  for (const pem of roots) {
    const root = new X509Certificate(pem);
    if (!isValidAt(root, now)) continue;
    const isRoot = root.raw.equals(top.raw) ? top !== leaf : top.checkIssued(root) && isSignedBy(top, root);
    if (isRoot) return titleOf(root);
  }
  return undefined;
}

function isValidAt({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return validFromDate.getTime() <= now && now <= validToDate.getTime();
}
