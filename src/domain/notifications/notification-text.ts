/** The texts of notifications: a subject line, and plain text that says what to do. */
import { formatByteSize } from '../../base/byte-size.ts';
import { healthyWords, unhealthyWords } from './notification-deployment-text.ts';
import type { Digest } from './notification-digest.ts';
import { endpointHealthyWords, endpointUnhealthyWords } from './notification-endpoint-text.ts';
import { expiryText, privateCaRenewedWords, privateCaWords, timeUntil } from './notification-expiry-text.ts';
import { foundWords } from './notification-scans.ts';
import {
  type Data,
  fact,
  oneLine,
  overdueWords,
  section,
  setAsideWords,
  type Words,
} from './notification-set-aside.ts';

export type MessageText = { readonly subject: string; readonly text: string };

/** The subject and text of a notice from `at` (UTC milliseconds). */
export function messageText(event: string, data: Data, at: number): MessageText {
  const words = texts[event]?.(data, at) ?? { subject: event, lines: [JSON.stringify(data)] };
  return signed(words.subject, words.lines);
}

/** A subject, and lines with a signature below. */
export function signed(subject: string, lines: readonly string[]): MessageText {
  return { subject: oneLine(subject), text: `${[...lines, '', '-- ', 'Certificate Vault'].join('\n')}\n` };
}

const texts: Readonly<Record<string, (data: Data, at: number) => Words>> = {
  'renewal.failed': (data, at) => {
    const { certificate, error, failed_attempts: attempts, told_before: before } = data;
    const again = Number(before) > 0;
    return {
      subject: again
        ? `${certificate}: renewal still failing after ${attempts} attempts`
        : `${certificate}: renewal failed`,
      lines: [
        again
          ? `Renewal of certificate ${certificate} has been failing since ${data.since}.`
          : `Renewal of certificate ${certificate} failed.`,
        '',
        ...fact('Names', names(data.domains)),
        ...fact('Issuer', data.issuer),
        ...fact('Error', error),
        ...fact('Attempts', attempts),
        ...fact('Next attempt', data.next_attempt_at),
        ...fact('Valid until', expiryText(data.expires_at, at)),
        '',
        'The vault retries automatically. To see what happened so far:',
        '',
        `  vault certificate show --name ${certificate}`,
        `  vault renewals list --failed --name ${certificate}`,
      ],
    };
  },
  'renewal.recovered': (data, at) => ({
    subject: `${data.certificate}: renewed again`,
    lines: [
      `Certificate ${data.certificate} was renewed.`,
      `Its renewals had been failing since ${data.since}.`,
      '',
      ...fact('Version', data.version),
      ...fact('Valid until', expiryText(data.expires_at, at)),
    ],
  }),
  'certificate.issued': (data, at) => ({
    subject: `${data.certificate}: version ${data.version} issued`,
    lines: [
      `Certificate ${data.certificate} has a new version.`,
      '',
      ...fact('Names', names(data.domains)),
      ...fact('Issuer', data.issuer),
      ...fact('Version', data.version),
      ...fact('Valid until', expiryText(data.expires_at, at)),
    ],
  }),
  'certificate.expiring': (data, at) => {
    const { certificate, not_valid_before: begin } = data;
    const isOver = data.urgency === 'over';
    const end = isOver ? 'has expired' : `expires ${timeUntil(data.expires_at, at)}`;
    const what = begin === undefined ? end : `is not valid before ${begin}`;
    return {
      subject: `${certificate} ${what}`,
      lines: [
        `Certificate ${certificate} ${what}.`,
        '',
        ...fact('Names', names(data.domains)),
        ...fact('Valid until', expiryText(data.expires_at, at)),
        ...fact('Issuer', data.issuer ?? 'none (imported)'),
        ...fact('ACME client', data.acme_client),
        ...fact('Last error', data.last_error),
        '',
        ...(begin === undefined ? expiringAdvice(data) : clockAdvice(data)),
      ],
    };
  },
  'certificate.recovered': (data, at) => ({
    subject: `${data.certificate}: renewed before it expired`,
    lines: [
      `Certificate ${data.certificate} now has version ${data.version}.`,
      '',
      ...fact('Valid until', expiryText(data.expires_at, at)),
    ],
  }),
  'api_key.expiring': (data, at) => {
    const key = data.api_key as { id: number; name: string; prefix: string };
    const what = data.urgency === 'over' ? 'has expired' : `expires ${timeUntil(data.expires_at, at)}`;
    return {
      subject: `API key ${key.name} ${what}`,
      lines: [
        `API key ${key.name} (id ${key.id}, ${key.prefix}) ${what}.`,
        '',
        ...fact('Certificates', names(data.certificates)),
        ...fact('Valid until', expiryText(data.expires_at, at)),
        ...fact('Last used', data.last_used_at ?? 'never'),
        '',
        'Machines that use it cannot download anything after that. Create a new key,',
        'deploy it to them, then revoke this one:',
        '',
        '  vault api-key create …',
        `  vault api-key revoke --id ${key.id}`,
      ],
    };
  },
  'private_ca.expiring': privateCaWords,
  'private_ca.recovered': privateCaRenewedWords,
  'backup.overdue': (data) => (data.set_aside === undefined ? overdueWords(data) : setAsideWords(data)),
  'deployment.unhealthy': unhealthyWords,
  'deployment.recovered': healthyWords,
  'endpoint.unhealthy': endpointUnhealthyWords,
  'endpoint.recovered': endpointHealthyWords,
  'scan.found': foundWords,
  'backup.recovered': (data) => ({
    subject: 'backups work again',
    lines: [`The last backup is from ${data.last_backup_at}.`, `Backups were overdue since ${data.since}.`],
  }),
  'disk.low': (data) => ({
    subject: data.state === 'critical' ? 'disk space is running out' : 'disk space is low',
    lines: [
      `The data directory of the vault has ${formatByteSize(Number(data.free_bytes))} left.`,
      data.state === 'critical'
        ? 'Refused requests are now only counted. A full disk stops all downloads.'
        : `The vault warns below ${formatByteSize(Number(data.low_below_bytes))}. A full disk stops all downloads.`,
      '',
      'Free some space, or move the data directory to a larger disk.',
    ],
  }),
  'disk.recovered': (data) => ({
    subject: 'disk space is sufficient again',
    lines: ['The data directory of the vault has enough space again.', `Space was low since ${data.since}.`],
  }),
  'pending_change.created': (data) => ({
    subject: `approval needed: ${data.summary}`,
    lines: [
      `${data.requested_by} asked for this change. Another administrator has to approve it:`,
      ...['', `  ${data.summary}`, ''],
      ...fact('Role', data.role),
      ...fact('Expires', data.expires_at),
      '',
      'Approve or reject it in the console, under Approvals.',
    ],
  }),
  digest: (data, at) => digestWords(data as unknown as Digest, at),
  test: (data) => ({
    subject: 'test notification',
    lines: [`Notification channel ${data.channel} works.`, 'This is only a test; there is nothing to do.'],
  }),
};

function digestWords(digest: Digest, at: number): Words {
  const { issued, failing, expiring, api_keys, backup_overdue_since: overdue } = digest;
  const { counts } = digest;
  const problems = counts.failing + counts.expiring + counts.api_keys + (overdue === null ? 0 : 1);
  const heads = [
    ...(problems > 0 ? [`${problems} ${problems === 1 ? 'problem' : 'problems'}`] : []),
    ...(counts.issued > 0 ? [`${counts.issued} issued`] : []),
  ];
  return {
    subject: `digest: ${heads.join(', ')}`,
    lines: [
      `From ${digest.from} to ${digest.until}.`,
      ...section(
        'Failing renewals',
        failing.map((one) => `${one.certificate}: ${one.error ?? 'unknown reason'}`),
        counts.failing,
      ),
      ...section(
        `Expiring within ${digest.days} days, overdue or renewed manually`,
        expiring.map(({ certificate, expires_at }) => `${certificate}: ${expiryText(expires_at, at)}`),
        counts.expiring,
      ),
      ...section(
        `API keys expiring within ${digest.days} days`,
        api_keys.map(({ id, name, expires_at }) => `${name} (id ${id}): ${expiryText(expires_at, at)}`),
        counts.api_keys,
      ),
      ...section('Backups', overdue === null ? [] : [`overdue since ${overdue}`]),
      ...section('New versions', issued, counts.issued),
    ],
  };
}

function names(list: unknown): string {
  return (list as readonly string[]).join(', ');
}

/** What to do about a certificate that is not valid yet. */
function clockAdvice({ certificate, issuer, acme_client: client }: Data): string[] {
  const canRenew = issuer !== null && client === undefined;
  return [
    'A clock was wrong when the certificate was issued, or the clock of the vault is wrong now.',
    canRenew ? 'Check the clock, then renew:' : 'Check the clock:',
    '',
    '  timedatectl',
    ...(canRenew ? [`  vault certificate renew --name ${certificate} --wait`] : []),
  ];
}

/** What to do about an expiring certificate: the vault cannot renew one of an ACME client. */
function expiringAdvice({ certificate, acme_client: client, issuer, renews_itself: renews }: Data): string[] {
  if (client !== undefined) {
    return [
      `ACME client ${client} should have renewed it and did not. Check the program on the machine where it runs.`,
      'If the certificate is no longer needed, delete it:',
      '',
      `  vault certificate delete --name ${certificate}`,
    ];
  }
  return [
    renews
      ? 'Its renewal is overdue. To renew it now and see the error:'
      : 'It does not renew automatically. To replace it:',
    '',
    issuer === null
      ? `  vault certificate import --name ${certificate} …`
      : `  vault certificate renew --name ${certificate} --wait`,
  ];
}
