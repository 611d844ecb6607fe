/** The child process of a scheduled backup: one request on stdin, one answer on stdout (serving/backup-process.ts). */
import { buffer } from 'node:stream/consumers';
import { OperatorError } from '../../../base/operator-error.ts';
import { system } from '../../../domain/audit/audit.ts';
import { checkBackup } from '../../../domain/backup/backup-file.ts';
import { backUpByPlan } from '../../../domain/backup/backup-schedule.ts';
import { openVault } from '../../runtime/open-vault.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { type BackupAnswer, backupRequest } from '../../serving/backup-process.ts';
import type { Terminal } from '../../terminal/terminal.ts';

/** Creates the backup that is due by the plan in the request, if any. */
export async function answerBackupRequest(terminal: Terminal): Promise<void> {
  const signal = stopSignal();
  const answer = await outcomeOf(await buffer(terminal.stdin), terminal, signal).catch((error: unknown) => {
    if (!(error instanceof OperatorError)) throw error;
    return { failure: error.message, hint: error.hint };
  });
  terminal.stdout.write(JSON.stringify(answer));
}

async function outcomeOf(
  request: Buffer,
  { world, version }: Terminal,
  signal: AbortSignal,
): Promise<BackupAnswer> {
  const { settings, keyring } = backupRequest(request);
  if (settings.backups === undefined) throw new Error('the settings have no plan for backups');
  const { vault, close } = await openVault(settings, world, 'refuse', undefined, undefined, { keyring });
  try {
    const verify = checkBackup;
    return await backUpByPlan(vault, settings.backups, { actor: system, version, verify, signal });
  } finally {
    await close();
  }
}
