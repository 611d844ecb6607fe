/** How notices are told to people: a subject of one line, and plain text that says what to do. */
import { formatByteSize } from '../../base/byte-size.ts';
import { day, hour } from '../../base/duration.ts';
import type { Digest } from './notification-digest.ts';
import { type Data, fact, oneLine, setAsideWords, type Words } from './notification-set-aside.ts';

export type MessageText = { readonly subject: string; readonly text: string };

/** The words for a notice that was made at `at` (UTC milliseconds). */
export function wordsFor(event: string, data: Data, at: number): MessageText {
  const words = texts[event]?.(data, at) ?? { subject: event, lines: [JSON.stringify(data)] };
  return signed(words.subject, words.lines);
}

/** A subject and lines, with a signature below. */
export function signed(subject: string, lines: readonly string[]): MessageText {
  return { subject: oneLine(subject), text: `${[...lines, '', '-- ', 'Certificate Vault'].join('\n')}\n` };
}

const texts: Readonly<Record<string, (data: Data, at: number) => Words>> = {
  'renewal.failed': (data, at) => {
    const { certificate, error, failed_attempts: attempts, told_before: before } = data;
    const again = Number(before) > 0;
    return {
      subject: again
        ? `${certificate}: renewals still fail, ${attempts} so far`
        : `${certificate}: a renewal failed`,
      lines: [
        again
          ? `Renewals of the certificate ${certificate} have failed since ${data.since}.`
          : `A renewal of the certificate ${certificate} failed.`,
        '',
        ...fact('Names', names(data.domains)),
        ...fact('Issuer', data.issuer),
        ...fact('What it said', error),
        ...fact('Attempts', attempts),
        ...fact('Next attempt', data.next_attempt_at),
        ...fact('Valid until', ends(data.expires_at, at)),
        '',
        'The vault tries again by itself. What was done so far:',
        '',
        `  vault certificate show --name ${certificate}`,
        `  vault renewals list --failed --name ${certificate}`,
      ],
    };
  },
  'renewal.recovered': (data, at) => ({
    subject: `${data.certificate}: renewed again`,
    lines: [
      `The certificate ${data.certificate} is renewed.`,
      `Renewals had failed since ${data.since}.`,
      '',
      ...fact('Version', data.version),
      ...fact('Valid until', ends(data.expires_at, at)),
    ],
  }),
  'certificate.issued': (data, at) => ({
    subject: `${data.certificate}: version ${data.version} issued`,
    lines: [
      `The certificate ${data.certificate} has a new version.`,
      '',
      ...fact('Names', names(data.domains)),
      ...fact('Issuer', data.issuer),
      ...fact('Version', data.version),
      ...fact('Valid until', ends(data.expires_at, at)),
    ],
  }),
  'certificate.expiring': (data, at) => {
    const { certificate, renews_itself: renews } = data;
    const isOver = data.urgency === 'over';
    const what = isOver ? 'has expired' : `expires ${inWords(data.expires_at, at)}`;
    return {
      subject: `${certificate} ${what}`,
      lines: [
        `The certificate ${certificate} ${what}.`,
        '',
        ...fact('Names', names(data.domains)),
        ...fact('Valid until', ends(data.expires_at, at)),
        ...fact('Issuer', data.issuer ?? 'none: it was imported'),
        ...fact('Last error', data.last_error),
        '',
        ...(renews
          ? ['It should have been renewed long ago. Try now, and see what is in the way:', '']
          : ['Nobody renews it by itself. Renew it, or import the next one:', '']),
        data.issuer === null
          ? `  vault certificate import --name ${certificate} …`
          : `  vault certificate renew --name ${certificate} --wait`,
      ],
    };
  },
  'certificate.recovered': (data, at) => ({
    subject: `${data.certificate}: has a new version, all is well`,
    lines: [
      `The certificate ${data.certificate} has version ${data.version} now.`,
      '',
      ...fact('Valid until', ends(data.expires_at, at)),
    ],
  }),
  'api_key.expiring': (data, at) => {
    const key = data.api_key as { id: number; name: string; prefix: string };
    const what = data.urgency === 'over' ? 'has expired' : `expires ${inWords(data.expires_at, at)}`;
    return {
      subject: `API key ${key.name} ${what}`,
      lines: [
        `The API key ${key.name} (id ${key.id}, ${key.prefix}) ${what}.`,
        '',
        ...fact('Certificates', names(data.certificates)),
        ...fact('Valid until', ends(data.expires_at, at)),
        ...fact('Last used', data.last_used_at ?? 'never'),
        '',
        'Machines that use it can download nothing once it is over. Make another one',
        'and give it to them, then revoke this one:',
        '',
        '  vault api-key create …',
        `  vault api-key revoke --id ${key.id}`,
      ],
    };
  },
  'backup.overdue': (data) => (data.set_aside === undefined ? overdueWords(data) : setAsideWords(data)),
  'backup.recovered': (data) => ({
    subject: 'backups are made again',
    lines: [`The last backup is of ${data.last_backup_at}.`, `They had been overdue since ${data.since}.`],
  }),
  'disk.low': (data) => ({
    subject: data.state === 'critical' ? 'disk space is running out' : 'disk space is low',
    lines: [
      `The data directory of the vault has ${formatByteSize(Number(data.free_bytes))} left.`,
      data.state === 'critical'
        ? 'Refused requests are only counted now. With no space left, all downloads stop.'
        : `The warning comes below ${formatByteSize(Number(data.low_below_bytes))}. With no space left, all downloads stop.`,
      '',
      'Free some space, or move the data directory to a larger disk.',
    ],
  }),
  'disk.recovered': (data) => ({
    subject: 'there is enough disk space again',
    lines: ['The data directory of the vault has enough space.', `It was low since ${data.since}.`],
  }),
  digest: (data, at) => digestWords(data as unknown as Digest, at),
  test: (data) => ({
    subject: 'a test of notifications',
    lines: [
      `This is a test of the notification channel ${data.channel}. It works.`,
      'Nothing has happened, and nothing needs to be done.',
    ],
  }),
};

function digestWords(digest: Digest, at: number): Words {
  const { issued, failing, expiring, api_keys, backup_overdue_since: overdue } = digest;
  const { counts } = digest;
  const wrong = counts.failing + counts.expiring + counts.api_keys + (overdue === null ? 0 : 1);
  const heads = [
    ...(wrong > 0 ? [`${wrong} to look at`] : []),
    ...(counts.issued > 0 ? [`${counts.issued} issued`] : []),
  ];
  return {
    subject: `digest: ${heads.join(', ')}`,
    lines: [
      `From ${digest.from} to ${digest.until}.`,
      ...section(
        'Renewals fail',
        failing.map((one) => `${one.certificate}: ${one.error ?? 'no reason is known'}`),
        counts.failing,
      ),
      ...section(
        `To be renewed by a person, or late, and ending within ${digest.days} days`,
        expiring.map(({ certificate, expires_at }) => `${certificate}: ${ends(expires_at, at)}`),
        counts.expiring,
      ),
      ...section(
        `API keys that end within ${digest.days} days`,
        api_keys.map(({ id, name, expires_at }) => `${name} (id ${id}): ${ends(expires_at, at)}`),
        counts.api_keys,
      ),
      ...section('Backups', overdue === null ? [] : [`overdue since ${overdue}`]),
      ...section('New versions', issued, counts.issued),
    ],
  };
}

/** A title and lines below it, of so many in all; nothing where there are none. */
export function section(title: string, lines: readonly string[], all = lines.length): string[] {
  if (lines.length === 0) return [];
  const more = all > lines.length ? [`  and ${all - lines.length} more`] : [];
  return ['', `${title}:`, '', ...lines.map((line) => `  ${oneLine(line)}`), ...more];
}

function names(list: unknown): string {
  return (list as readonly string[]).join(', ');
}

function ends(time: unknown, at: number): string | undefined {
  if (typeof time !== 'string') return undefined;
  return Date.parse(time) <= at ? `${time} (over)` : `${time} (${inWords(time, at)})`;
}

/** `in 12 days` */
function inWords(time: unknown, at: number): string {
  const left = Date.parse(String(time)) - at;
  const [count, unit] = left >= 2 * day ? [left / day, 'days'] : [left / hour, 'hours'];
  return count < 1 ? 'within the hour' : `in ${Math.floor(count)} ${Math.floor(count) === 1 ? 'hour' : unit}`;
}

function overdueWords(data: Data): Words {
  return {
    subject: data.last_backup_at === null ? 'there is no backup yet' : 'the backup is overdue',
    lines: [
      data.last_backup_at === null
        ? 'Backups are scheduled, and none has been made yet.'
        : `The last backup of the vault is of ${data.last_backup_at}.`,
      '',
      ...fact('Directory', data.directory),
      ...fact('One every', `${Number(data.every_seconds) / 60} minutes`),
      ...(data.failing === true ? fact('State', 'the last attempt failed; the log says why') : []),
      '',
      'Look whether the directory is there, has room, and may be written to. To try:',
      '',
      '  vault backup FILE',
    ],
  };
}
