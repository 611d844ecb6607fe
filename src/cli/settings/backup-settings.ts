/** The settings of scheduled backups: directory, interval and how many to keep. */
import { constants, type Stats } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { day, minute, parseDuration } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { quoted } from '../../base/paths/shell-word.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { refuseForeignBackups } from '../../domain/backup/backup-place.ts';
import type { BackupPlan } from '../../domain/backup/backup-schedule.ts';
import type { Found } from './setting-values.ts';

export const backupOptions = {
  'backup-dir': {
    type: 'string',
    valueHint: 'DIR',
    description: 'write scheduled backups to this directory (default: no backups)',
  },
  'backup-every': {
    type: 'string',
    valueHint: 'DURATION',
    description: 'the interval of scheduled backups (default: 1d)',
  },
  'backup-keep': {
    type: 'string',
    valueHint: 'N',
    description: 'how many scheduled backups to keep (default: 7)',
  },
} as const;

/** The backup plan; undefined if no directory is set. Throws OperatorError that names the invalid setting. */
export function backupPlan(
  setting: (name: keyof typeof backupOptions) => Found | undefined,
): BackupPlan | undefined {
  const directory = setting('backup-dir');
  const every = period(setting('backup-every'));
  const keep = number(setting('backup-keep'));
  return directory === undefined ? undefined : { directory: resolve(directory.value), every, keep };
}

/**
 * Throws OperatorError if this process cannot write backups to the directory of the plan, or other users can change it.
 */
export async function refuseUnusableBackups(plan: BackupPlan | undefined): Promise<void> {
  if (plan === undefined) return;
  const { directory } = plan;
  let stats: Stats | undefined;
  try {
    stats = await stat(directory).catch(missing);
    if (stats?.isDirectory()) await access(directory, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new OperatorError(`--backup-dir: cannot write to ${directory}: ${describeSystemError(error)}`, {
      hint: `Make it writable for the user that runs the vault. A systemd service also needs ReadWritePaths=${directory}.`,
      cause: error,
    });
  }
  if (stats?.isDirectory()) {
    await refuseForeignBackups(directory);
    return;
  }
  const fault = stats === undefined ? 'does not exist' : 'is not a directory';
  throw new OperatorError(`--backup-dir: ${directory} ${fault}`, {
    hint: directory.includes('/~/')
      ? 'Write the full path: the vault does not expand ~.'
      : `Mount its disk, or create it as the user that runs the vault.\n  Fix: mkdir -m 700 -p ${quoted(directory)}`,
  });
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
}

function period(setting: Found | undefined): number {
  if (setting === undefined) return day;
  const ms = parseDuration(setting.value);
  if (ms !== undefined && ms >= 5 * minute && ms <= 30 * day) return ms;
  throw new OperatorError(`${setting.from}: "${setting.value}" is not a valid interval`, {
    hint: 'Use a number with m, h or d, from 5m to 30d, such as 6h.',
  });
}

function number(setting: Found | undefined): number {
  if (setting === undefined) return 7;
  if (/^[1-9]\d{0,3}$/.test(setting.value)) return Number(setting.value);
  throw new OperatorError(`${setting.from}: "${setting.value}" is not a valid number of backups`, {
    hint: 'Use a whole number from 1 to 9999.',
  });
}
