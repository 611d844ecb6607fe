/** The words for a backup that was set aside, and the form in which words of notices state facts. */
import { shortened } from '../../base/printable-text.ts';
import { acceptedPath } from '../backup/backup-directory.ts';
import type { SetAside } from '../backup/backup-health.ts';

/** What a notice is about, as its event has it. */
export type Data = Readonly<Record<string, unknown>>;

export type Words = { readonly subject: string; readonly lines: readonly string[] };

/** A label and its value, which may come from others and must not look like lines of ours. */
export function fact(label: string, value: unknown): string[] {
  return value === null || value === undefined
    ? []
    : [`  ${`${label}:`.padEnd(14)} ${oneLine(String(value))}`];
}

/** The words where a scheduled backup holds much less than the one before. */
export function setAsideWords({ set_aside, directory }: Data): Words {
  const { path, holds, before } = set_aside as SetAside;
  return {
    subject: 'the backup holds much less than the one before',
    lines: [
      `The vault holds ${amounts(holds)} now;`,
      `its backup before holds ${amounts(before)}.`,
      'The new backup is kept under another name, and no backup is removed.',
      '',
      ...fact('Directory', directory),
      ...fact('Set aside', path),
      '',
      'If certificates are missing, stop the vault and restore the backup before.',
      'If they were deleted on purpose, give the new backup the usual name:',
      '',
      `  mv ${path} ${acceptedPath(path)}`,
    ],
  };
}

function amounts({ certificates, versions }: SetAside['holds']): string {
  return `${certificates} certificates and ${versions} versions`;
}

/** A text that may come from others, on one line and not too long. */
export function oneLine(text: string): string {
  return shortened(text, 900);
}
