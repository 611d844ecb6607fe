/** Makes the backups that the settings ask for: looks once a minute, so that a clock that jumps or a server that slept is no matter. */
import { minute } from '../base/duration.ts';
import { system } from '../domain/audit/audit.ts';
import type { BackupOrder } from '../domain/backup/backup.ts';
import type { BackupHealth } from '../domain/backup/backup-health.ts';
import { type BackupPlan, backUpByPlan, type PlanOutcome } from '../domain/backup/backup-schedule.ts';
import type { LogContext, SecretsContext } from '../domain/contexts.ts';

/** How soon a backup is tried again that failed. */
const tryAgainAfter = 10 * minute;

/** Runs until `signal` is aborted. What goes wrong is logged, shown in the readiness details, and tried again. */
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
      tell(vault, outcome);
      backupHealth.looked(outcome.setAside);
    } catch (error) {
      if (signal.aborted) return;
      backupHealth.failed();
      log.error({ err: error }, 'the backup failed; trying again in ten minutes');
      wait = tryAgainAfter;
    }
    await world.sleep(wait, signal);
  }
}

/** With each backup, so that the log tells of what is wrong as often as it happens. */
function tell({ log }: LogContext, { made: file, setAside, clone }: PlanOutcome): void {
  if (file === undefined) return;
  if (setAside === undefined) log.info({ file }, 'a backup was made');
  else {
    const { holds, before } = setAside;
    log.error(
      { file, holds, before },
      'the backup holds much less than the one before; it was set aside, and no backup is removed',
    );
  }
  if (clone !== undefined) {
    log.warn({ file: clone }, 'another vault with the same master key writes backups to the same directory');
  }
}
