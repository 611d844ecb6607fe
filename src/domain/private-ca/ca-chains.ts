/** What clients of a private CA trust, and what links one root to another after a rotation. */
import { X509Certificate } from 'node:crypto';
import { DerReader, derTags } from '../../crypto/der-reader.ts';
import { encodePem } from '../../crypto/pem.ts';
import type { Reader } from '../../db/database.ts';
import {
  type CaCertificateRow,
  listIntermediates,
  listRoots,
} from '../../db/tables/issuance/ca-certificates.ts';
import type { IssuingAuthority } from './authorities.ts';

/**
 * The roots that clients are to trust at this time (UTC milliseconds): former ones whose certificates have not all
 * expired, then the current one. Programs that read only the first certificate of a file verify what is issued under
 * either.
 */
export async function trustedRoots(
  reader: Reader,
  issuerId: number,
  now: number,
): Promise<CaCertificateRow[]> {
  const [current, ...former] = await listRoots(reader, issuerId);
  if (current === undefined) throw new Error('the private CA has no root');
  const trusted = [current];
  for (const root of former) if ((await neededUntil(reader, root)) > now) trusted.unshift(root);
  return trusted;
}

/** When the last certificate under a root expires, which may be in the past (UTC milliseconds). */
export async function neededUntil(reader: Reader, root: CaCertificateRow): Promise<number> {
  const intermediates = await listIntermediates(reader, root);
  const last = Math.max(0, ...intermediates.map((row) => Math.min(row.issued_until, row.not_after)));
  return Math.min(last, root.not_after);
}

/** What follows the intermediate in the chains of what is issued at this time: DER, upwards. */
export function upperChain({ root, intermediate }: IssuingAuthority, now: number): Buffer[] {
  const links = [...split(intermediate.upper_chain), ...split(root.upper_chain)];
  return links.filter((der) => new X509Certificate(der).validToDate.getTime() > now);
}

/**
 * The CA certificates (DER) of a company above what is issued, whose constraints apply to its names; none under a root
 * of the vault, which the settings of the CA confine.
 */
export function inheritedChain({ root, intermediate }: IssuingAuthority): Buffer[] {
  if (root.is_external === 0) return [];
  return [intermediate.certificate, ...split(intermediate.upper_chain), root.certificate];
}

/**
 * The certificates that link a root to a former or later one at this time, for clients that trust only one of them: the
 * former roots certified by their successors, and the current one by its predecessor.
 */
export async function crossCertificates(reader: Reader, issuerId: number, now: number): Promise<Buffer[]> {
  const roots = await trustedRoots(reader, issuerId, now);
  const links = roots.flatMap((root) => [...split(root.cross_certificate), ...split(root.upper_chain)]);
  return links.filter((der) => new X509Certificate(der).validToDate.getTime() > now);
}

/** Certificates as PEM, one after another. */
export function pemOf(certificates: readonly (Buffer | CaCertificateRow)[]): string {
  const all = certificates.map((one) => (Buffer.isBuffer(one) ? one : one.certificate));
  return all.map((der) => encodePem('CERTIFICATE', der)).join('');
}

function split(concatenated: Buffer | null): Buffer[] {
  const found = [];
  const reader = new DerReader(concatenated ?? Buffer.alloc(0));
  while (!reader.isDone) found.push(reader.take(derTags.sequence).whole);
  return found;
}
