/** Creates scheduled backups. Checks once a minute, so that it copes with clock changes and suspended machines. */
import { minute } from '../base/duration.ts';
import { system } from '../domain/audit/audit.ts';
import type { BackupOrder } from '../domain/backup/backup.ts';
import type { BackupHealth } from '../domain/backup/backup-health.ts';
import { type BackupPlan, backUpByPlan, type PlanOutcome } from '../domain/backup/backup-schedule.ts';
import type { LogContext, SecretsContext } from '../domain/contexts.ts';

/** Delay after a failed backup. */
const retryDelay = 10 * minute;

/** Runs until `signal` is aborted. Logs errors, shows them in the readiness details, and retries. */
export async function runBackupScheduler(
  vault: SecretsContext & LogContext & { readonly backupHealth: BackupHealth },
  plan: BackupPlan,
  order: Pick<BackupOrder, 'version' | 'verify'>,
  signal: AbortSignal,
): Promise<void> {
  const { world, log, backupHealth } = vault;
  while (!signal.aborted) {
    let wait: number = minute;
    try {
      const outcome = await backUpByPlan(vault, plan, { ...order, actor: system });
      logOutcome(vault, outcome);
      backupHealth.looked(outcome.setAside);
    } catch (error) {
      if (signal.aborted) return;
      backupHealth.failed();
      log.error({ err: error }, 'backup failed; retrying in 10 minutes');
      wait = retryDelay;
    }
    await world.sleep(wait, signal);
  }
}

/** Logs every backup, and repeats warnings with each one. */
function logOutcome({ log }: LogContext, { made: file, setAside, clone }: PlanOutcome): void {
  if (file === undefined) return;
  if (setAside === undefined) log.info({ file }, 'backup created');
  else {
    const { holds, before } = setAside;
    log.error(
      { file, holds, before },
      'backup much smaller than the previous one; set it aside and kept all backups',
    );
  }
  if (clone !== undefined) {
    log.warn({ file: clone }, 'another vault with the same master key writes backups to the same directory');
  }
}
