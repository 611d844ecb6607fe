/** Finds a certificate by name and suggests similar names for an unknown one. */
import { parseCertName } from '../../base/cert-name.ts';
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import {
  type CertificateSummaryRow,
  findCertificateSummary,
} from '../../db/tables/certificates/certificate-summaries.ts';
import {
  type CertificateRow,
  findCertificate,
  findCertificateIds,
  listCertificateNames,
} from '../../db/tables/certificates/certificates.ts';
import { didYouMean } from '../closest-names.ts';
import type { DatabaseContext } from '../contexts.ts';

/** A certificate with the name of its issuer and the facts of its current version. */
export type CertificateSummary = CertificateSummaryRow;

/** How many names are compared for suggestions. */
const namesToCompare = 10_000;

/**
 * The certificate of this name. Throws `certificate_not_found`, also for an invalid name. With `suggest`, which
 * requires that the caller may know all names, the error suggests the closest ones.
 */
export async function requireCertificate(
  reader: Reader,
  name: string,
  { suggest }: { readonly suggest: boolean } = { suggest: false },
): Promise<CertificateRow> {
  const row = parseCertName(name) && (await findCertificate(reader, name));
  if (row !== undefined) return row;
  throw new Problem('certificate_not_found', {
    detail: `Unknown certificate ${JSON.stringify(name)}.`,
    ...(suggest && { hint: await suggestName(reader, name) }),
  });
}

/** The ids of the certificates of an allowlist. Throws `invalid_request` for a name that does not exist. */
export async function allowlistIds(reader: Reader, names: readonly string[]): Promise<number[]> {
  return [...(await certificateIds(reader, names)).values()];
}

/** The ids of these certificates by name. Throws `invalid_request` for a name that does not exist. */
export async function certificateIds(
  reader: Reader,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const ids = await findCertificateIds(reader, names);
  const unknown = names.find((name) => !ids.has(name));
  if (unknown === undefined) return ids;
  const message = `unknown certificate "${unknown}"`;
  throw new Problem('invalid_request', {
    detail: `certificates: ${message}.`,
    errors: [{ path: 'certificates', message }],
    hint: await suggestName(reader, unknown),
  });
}

/** What is stored about the certificate of this name right now: what requests remember may be a moment older. */
export function certificateSummary(
  { db }: DatabaseContext,
  name: string,
): Promise<CertificateSummary | undefined> {
  return findCertificateSummary(db.reader, name);
}

/** A hint with the closest certificate names. */
export async function suggestName(reader: Reader, name: string): Promise<string> {
  const names = await listCertificateNames(reader, namesToCompare);
  return didYouMean(name, names, 'Try: vault certificate list');
}
