/**
 * Whether private CAs under the root of a company can go on issuing: only the company's CA issues the next
 * intermediate.
 */
import { day } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { longestLifetime } from '../../db/tables/certificates/certificates.ts';
import type { CaCertificateRow } from '../../db/tables/issuance/ca-certificates.ts';
import type { TimedContext } from '../contexts.ts';
import { issuingIntermediate } from '../private-ca/authorities.ts';
import { settingsOfCa } from '../private-ca/ca-settings.ts';
import type { PrivateCa } from '../private-ca/rotation.ts';
import type { Finding } from './finding.ts';

/** Another department may take weeks. */
const warnedBefore = 365 * day;
const urgentBefore = 30 * day;

/** The finding for a private CA with this root of a company. */
export async function companyFinding(
  { db: { reader }, world }: TimedContext,
  { id, name }: PrivateCa,
  root: CaCertificateRow,
): Promise<Finding> {
  const settings = await settingsOfCa(reader, id);
  const end = (await issuingIntermediate(reader, root, settings))?.not_after ?? root.not_after;
  const left = end - world.now();
  const until = formatTimestamp(end);
  const finding = (status: Finding['status'], problem: string): Finding => ({
    check: 'private-ca',
    status,
    about: name,
    message: `${name}: ${problem}`,
    ...(status !== 'ok' && {
      hint: `The CA of the company issues the next one. Send it a CSR, and import what it returns.\nFix: vault ca csr --issuer ${name} --out vault.csr`,
    }),
  });
  if (left <= 0) return finding('failed', `its intermediate expired at ${until}`);
  if (left < warnedBefore) {
    return finding(left < urgentBefore ? 'failed' : 'warning', `its intermediate expires at ${until}`);
  }
  const longest = Math.max(settings.lifetime, await longestLifetime(reader, id));
  if (left < longest) {
    const days = Math.ceil(longest / day);
    return finding('warning', `certificates for ${days} days expire with its intermediate at ${until}`);
  }
  return finding('ok', `it issues under the root of a company until ${until}`);
}
