/** The CA certificates of a private CA as administrators see them, without their keys. */
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { encodePem } from '../../crypto/pem.ts';
import { certificateFacts } from '../../crypto/x509/certificate-facts.ts';
import {
  type CaCertificateRow,
  listIntermediates,
  listRoots,
} from '../../db/tables/issuance/ca-certificates.ts';
import type { TimedContext } from '../contexts.ts';
import { holdsKey, issuingIntermediate } from './authorities.ts';
import { neededUntil } from './ca-chains.ts';
import { settingsOfCa } from './ca-settings.ts';

export type CaCertificateView = {
  role: 'root' | 'intermediate';
  /**
   * `current`: the root that is issued under, or the intermediate that issues; `former`: what it issued is still valid;
   * `retired`: nothing needs it any longer.
   */
  state: 'current' | 'former' | 'retired';
  subject: string;
  fingerprint_sha256: string;
  /** Where its key is: in the vault, exported to a file, or at the company that the root belongs to. */
  key: 'vault' | 'exported' | 'company';
  not_before: string;
  not_after: string;
  /** When the last certificate under it expires; null if it issued none. */
  needed_until: string | null;
  /** In PEM. */
  pem: string;
};

/** The roots of a private CA, each with its intermediates after it; those in use come first. */
export async function viewCaCertificates(
  { db: { reader }, world }: TimedContext,
  issuerId: number,
): Promise<CaCertificateView[]> {
  const settings = await settingsOfCa(reader, issuerId);
  const [current, ...former] = await listRoots(reader, issuerId);
  if (current === undefined) return [];
  const issuing = await issuingIntermediate(reader, current, settings);
  const now = world.now();
  const stateOf = (row: CaCertificateRow, until: number) => {
    if (row.id === current.id || row.id === issuing?.id) return 'current';
    return until > now ? 'former' : 'retired';
  };
  const views = [];
  for (const root of [current, ...former]) {
    const until = await neededUntil(reader, root);
    views.push(view(root, stateOf(root, until), until));
    for (const row of await listIntermediates(reader, root)) {
      const end = Math.min(row.issued_until, row.not_after);
      views.push(view(row, stateOf(row, end), end));
    }
  }
  return views;
}

function view(row: CaCertificateRow, state: CaCertificateView['state'], until: number): CaCertificateView {
  const { subject, fingerprintSha256 } = certificateFacts(row.certificate);
  const elsewhere = row.is_external === 1 ? 'company' : 'exported';
  return {
    role: row.role,
    state,
    subject,
    fingerprint_sha256: fingerprintSha256,
    key: holdsKey(row) ? 'vault' : elsewhere,
    not_before: formatTimestamp(row.not_before),
    not_after: formatTimestamp(row.not_after),
    needed_until: formatTimestampOrNull(until === 0 ? null : until),
    pem: encodePem('CERTIFICATE', row.certificate),
  };
}
