/** How the certificates and their renewals are: one finding for each that is in trouble, and one for all the others. */
import { hour, minute, second } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { type CertificateSummaryRow, pagesOfSummaries } from '../../db/tables/certificate-summaries.ts';
import { nextMoment } from '../../db/tables/certificates.ts';
import { findAcmeIssuer, listIssuers } from '../../db/tables/issuers.ts';
import { findNeglectedRenewal } from '../../db/tables/waiting-renewals.ts';
import { certificateStatus } from '../certificates/certificate-status.ts';
import type { TimedContext } from '../contexts.ts';
import type { Finding } from './finding.ts';

/** A thousand sentences about one dead CA help nobody. */
const mostShown = 20;

/** A worker looks at the queue every second; what nobody takes for so long has no worker. */
const longestQueueing = 10 * minute;

/** Every certificate, in the order of names: those in trouble by themselves, worst first, then how many are well. */
export async function certificateFindings({ db, world }: TimedContext): Promise<Finding[]> {
  const now = world.now();
  const troubles: Finding[] = [];
  let all = 0;
  for await (const rows of pagesOfSummaries(db.reader)) {
    troubles.push(...rows.flatMap((row) => troubleWith(row, now)));
    all += rows.length;
  }
  const sorted = [
    ...troubles.filter(({ status }) => status === 'failed'),
    ...troubles.filter(({ status }) => status === 'warning'),
  ];
  const findings = sorted.slice(0, mostShown);
  if (sorted.length > mostShown) {
    findings.push({
      check: 'certificates',
      status: sorted[mostShown]?.status ?? 'warning',
      message: `${sorted.length - mostShown} more certificates are in trouble`,
      hint: 'See all of them with "vault certificate list".',
    });
  }
  return [...findings, await others(db, now, { all, inTrouble: sorted.length })];
}

/** Renewals that wait too long, and CAs that asked to be left alone. */
export async function renewalFindings({ db, world }: TimedContext): Promise<Finding[]> {
  const now = world.now();
  const findings: Finding[] = [];
  const waiting = await findNeglectedRenewal(db.reader, now, now - longestQueueing);
  if (waiting !== undefined) {
    findings.push({
      check: 'renewals',
      status: 'failed',
      message: `a renewal waits since ${formatTimestamp(waiting.requested_at)}, and nobody takes it up`,
      hint: 'Renewals are carried out by "vault serve": see whether it runs, and what its log says.',
    });
  }
  for (const issuer of await listIssuers(db.reader)) {
    const until = (await findAcmeIssuer(db.reader, issuer.id))?.paused_until ?? 0;
    if (until <= now) continue;
    findings.push({
      check: 'renewals',
      status: 'warning',
      about: issuer.name,
      message: `the CA of ${issuer.name} asked to be left alone until ${formatTimestamp(until)}`,
      hint: 'It goes on by itself. If this happens often, its rate limits are too small for what it is asked for.',
    });
  }
  if (findings.length > 0) return findings;
  return [{ check: 'renewals', status: 'ok', message: 'none waits longer than it should' }];
}

function troubleWith(row: CertificateSummaryRow, now: number): Finding[] {
  const { name, current, last_error: error, auto_renew: renews, issuer_id: issuer } = row;
  const status = certificateStatus(current, now, row.disabled_at !== null);
  const finding = (severity: 'warning' | 'failed', message: string, hint: string): Finding[] => [
    {
      check: 'certificate',
      status: severity,
      about: name,
      message: `${name} ${message}${reason(error)}`,
      hint,
    },
  ];
  const renew = `Mend what the error says, then try "vault certificate renew --name ${name} --wait".`;
  const byHand =
    issuer === null
      ? `import a new version with "vault certificate import --name ${name}"`
      : `renew it with "vault certificate renew --name ${name} --wait", or let the vault: "vault certificate update --name ${name} --auto-renew"`;
  const again = renews === 1 ? renew : `Nothing renews it by itself: ${byHand}.`;
  if (status === 'disabled') return [];
  if (status === 'expired')
    return finding('failed', `has expired on ${formatTimestamp(current?.not_after ?? 0)}`, again);
  if (status === 'expiring') {
    return finding(
      'failed',
      `expires in ${remaining((current?.not_after ?? 0) - now)} and is not renewed`,
      again,
    );
  }
  if (status === 'pending' && (error !== null || row.created_at < now - hour)) {
    return finding(error === null ? 'warning' : 'failed', 'has no version yet', renew);
  }
  if (error !== null) return finding('warning', 'was not renewed at the last attempt', renew);
  if (renews === 1 && status === 'valid' && row.next_renewal_at === null) {
    return finding('warning', 'has no moment at which it is renewed', `Plan it anew: ${renew}`);
  }
  return [];
}

function reason(error: string | null): string {
  return error === null ? '' : `: ${error}`;
}

function remaining(ms: number): string {
  const hours = Math.floor(ms / hour);
  return hours < 48 ? `${hours} hours` : `${Math.floor(hours / 24)} days`;
}

async function others(
  db: TimedContext['db'],
  now: number,
  { all, inTrouble }: { readonly all: number; readonly inTrouble: number },
): Promise<Finding> {
  const next = await nextMoment(db.reader, now);
  const well = all - inTrouble;
  const when =
    next === undefined
      ? 'none is renewed by itself'
      : `the next is renewed on ${formatTimestamp(next - (next % second))}`;
  const message =
    all === 0
      ? 'there are none yet'
      : `${well} of ${all} ${all === 1 ? 'certificate is' : 'certificates are'} well; ${when}`;
  return { check: 'certificates', status: 'ok', message };
}
