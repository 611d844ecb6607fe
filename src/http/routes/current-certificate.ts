/** The current state of a certificate, for responses to changes: cached data may be outdated. */
import { Problem } from '../../base/problem.ts';
import { findCertificateSummary } from '../../db/tables/certificate-summaries.ts';
import { type CertificateView, certificateView } from '../../domain/certificates/certificate-views.ts';
import type { Vault } from '../../domain/vault.ts';

/** Throws `certificate_not_found` if it was deleted meanwhile. */
export async function currentCertificate(
  { db, world }: Vault,
  name: string,
  baseUrl: string,
): Promise<CertificateView> {
  const summary = await findCertificateSummary(db.reader, name);
  if (summary === undefined) throw new Problem('certificate_not_found');
  return certificateView(summary, world.now(), baseUrl);
}
