/** Findings about certificates and their renewals: one per certificate with a problem, and one for all the others. */
import { hour, minute, second } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import {
  type CertificateSummaryRow,
  pagesOfSummaries,
} from '../../db/tables/certificates/certificate-summaries.ts';
import { nextMoment } from '../../db/tables/certificates/certificates.ts';
import { findAcmeIssuer, listIssuers } from '../../db/tables/issuance/issuers.ts';
import { findNeglectedRenewal } from '../../db/tables/renewals/waiting-renewals.ts';
import { certificateStatus } from '../certificates/certificate-status.ts';
import type { TimedContext } from '../contexts.ts';
import type { Finding } from './finding.ts';

/** One unreachable CA must not fill the screen with a thousand findings. */
const maxShown = 20;

/** Workers poll the queue every second, so a renewal that waits this long has no worker. */
const maxQueueing = 10 * minute;

/**
 * One finding per certificate with a problem, failures first and then by name, and a last one that counts the others.
 */
export async function certificateFindings({ db, world }: TimedContext): Promise<Finding[]> {
  const now = world.now();
  const problems: Finding[] = [];
  let all = 0;
  for await (const rows of pagesOfSummaries(db.reader)) {
    problems.push(...rows.flatMap((row) => problemsOf(row, now)));
    all += rows.length;
  }
  const sorted = [
    ...problems.filter(({ status }) => status === 'failed'),
    ...problems.filter(({ status }) => status === 'warning'),
  ];
  const findings = sorted.slice(0, maxShown);
  if (sorted.length > maxShown) {
    findings.push({
      check: 'certificates',
      status: sorted[maxShown]?.status ?? 'warning',
      message: `${sorted.length - maxShown} more certificates have problems`,
      hint: 'Try: vault certificate list',
    });
  }
  return [...findings, await others(db, now, { all, withProblems: sorted.length })];
}

/** Renewals that no worker picks up, and CAs that asked the vault to pause. */
export async function renewalFindings({ db, world }: TimedContext): Promise<Finding[]> {
  const now = world.now();
  const findings: Finding[] = [];
  const waiting = await findNeglectedRenewal(db.reader, now, now - maxQueueing);
  if (waiting !== undefined) {
    findings.push({
      check: 'renewals',
      status: 'failed',
      message: `a renewal has been queued since ${formatTimestamp(waiting.requested_at)} and no worker picks it up`,
      hint: '"vault serve" runs the renewals. Check that it is running, and check its log.',
    });
  }
  for (const issuer of await listIssuers(db.reader)) {
    const until = (await findAcmeIssuer(db.reader, issuer.id))?.paused_until ?? 0;
    if (until <= now) continue;
    findings.push({
      check: 'renewals',
      status: 'warning',
      about: issuer.name,
      message: `the CA of ${issuer.name} accepts no requests until ${formatTimestamp(until)}`,
      hint: 'Renewals resume then. If this happens often, the rate limits of the CA are too low for your certificates.',
    });
  }
  if (findings.length > 0) return findings;
  return [{ check: 'renewals', status: 'ok', message: 'no renewal is overdue' }];
}

function problemsOf(row: CertificateSummaryRow, now: number): Finding[] {
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
  const renew = `Fix the error, then renew.\nTry: vault certificate renew --name ${name} --wait`;
  const byHand =
    issuer === null
      ? `Import a new version.\nFix: vault certificate import --name ${name} --fullchain FILE --private-key FILE`
      : `Renew it, or turn on automatic renewal.\nTry: vault certificate renew --name ${name} --wait\nTry: vault certificate update --name ${name} --auto-renew`;
  const byClient = `Its ACME client, ${row.owner_name}, renews it. Check the program on the machine where it runs, or delete the certificate.\nTry: vault certificate delete --name ${name}`;
  const ofVault = renews === 1 ? renew : `It does not renew automatically. ${byHand}`;
  const again = row.owner_name === null ? ofVault : byClient;
  if (status === 'disabled') return [];
  if (status === 'expired')
    return finding('failed', `expired on ${formatTimestamp(current?.not_after ?? 0)}`, again);
  if (status === 'not_yet_valid') {
    return finding(
      'failed',
      `is not valid before ${formatTimestamp(current?.not_before ?? 0)}`,
      `The clock was wrong when the certificate was issued, or is wrong now. Check the clock, then renew.\nFix: timedatectl set-ntp true\nTry: vault certificate renew --name ${name} --wait`,
    );
  }
  if (status === 'expiring') {
    return finding(
      'failed',
      `expires in ${remaining((current?.not_after ?? 0) - now)} and has not been renewed`,
      again,
    );
  }
  // The client learns of its errors itself.
  if (row.owner_name !== null) return [];
  if (status === 'pending' && (error !== null || row.created_at < now - hour)) {
    return finding(error === null ? 'warning' : 'failed', 'has not been issued yet', renew);
  }
  if (error !== null) return finding('warning', 'failed to renew', renew);
  if (renews === 1 && status === 'valid' && row.next_renewal_at === null) {
    return finding(
      'warning',
      'has no scheduled renewal',
      `Renew it.\nFix: vault certificate renew --name ${name} --wait`,
    );
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
  { all, withProblems }: { readonly all: number; readonly withProblems: number },
): Promise<Finding> {
  const next = await nextMoment(db.reader, now);
  const fine = all - withProblems;
  const when =
    next === undefined
      ? 'no renewal is scheduled'
      : `next renewal on ${formatTimestamp(next - (next % second))}`;
  const message =
    all === 0
      ? 'no certificates yet'
      : `${fine} of ${all} ${all === 1 ? 'certificate is' : 'certificates are'} healthy; ${when}`;
  return { check: 'certificates', status: 'ok', message };
}
