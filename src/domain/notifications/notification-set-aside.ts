/** The notifications about backups that are overdue or were set aside, and how notifications format facts. */
import { shortened } from '../../base/printable-text.ts';
import { acceptedPath } from '../backup/backup-directory.ts';
import type { SetAside } from '../backup/backup-health.ts';

/** The data of a notice; its shape depends on the event. */
export type Data = Readonly<Record<string, unknown>>;

export type Words = { readonly subject: string; readonly lines: readonly string[] };

/** A line with a label and a value; an untrusted value must not look like lines of the vault. */
export function fact(label: string, value: unknown): string[] {
  return value === null || value === undefined
    ? []
    : [`  ${`${label}:`.padEnd(14)} ${oneLine(String(value))}`];
}

/** The text about a scheduled backup that is much smaller than the previous one. */
export function setAsideWords({ set_aside, directory }: Data): Words {
  const { path, holds, before } = set_aside as SetAside;
  return {
    subject: 'backup is much smaller than the previous one',
    lines: [
      `The vault has ${amounts(holds)} now;`,
      `its previous backup has ${amounts(before)}.`,
      'The vault kept the new backup under another name and removed no backups.',
      '',
      ...fact('Directory', directory),
      ...fact('Set aside', path),
      '',
      'If certificates are missing, stop the vault and restore the previous backup.',
      'If they were deleted on purpose, rename the new backup to accept it:',
      '',
      `  mv ${path} ${acceptedPath(path)}`,
    ],
  };
}

function amounts({ certificates, versions }: SetAside['holds']): string {
  return `${certificates} certificates and ${versions} versions`;
}

/** A possibly untrusted text, as one line of limited length. */
export function oneLine(text: string): string {
  return shortened(text, 900);
}

/** A title and its lines, the first of `all`; empty if there are no lines. */
export function section(title: string, lines: readonly string[], all = lines.length): string[] {
  if (lines.length === 0) return [];
  const more = all > lines.length ? [`  and ${all - lines.length} more`] : [];
  return ['', `${title}:`, '', ...lines.map((line) => `  ${oneLine(line)}`), ...more];
}

/** The text about backups that are overdue. */
export function overdueWords(data: Data): Words {
  return {
    subject: data.last_backup_at === null ? 'no backup yet' : 'backup is overdue',
    lines: [
      data.last_backup_at === null
        ? 'Backups are scheduled, but the vault has not created one yet.'
        : `The last backup of the vault is from ${data.last_backup_at}.`,
      '',
      ...fact('Directory', data.directory),
      ...fact('Interval', `${Number(data.every_seconds) / 60} minutes`),
      ...(data.failing === true ? fact('State', 'last attempt failed; see the log of the vault') : []),
      '',
      'Check that the directory exists, is writable and has free space. To test:',
      '',
      '  vault backup FILE',
    ],
  };
}
