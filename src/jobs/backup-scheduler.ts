/** Makes the backups that the settings ask for: looks once a minute, so that a clock that jumps or a server that slept is no matter. */
import { minute } from '../base/duration.ts';
import { system } from '../domain/audit.ts';
import type { BackupOrder } from '../domain/backup.ts';
import { type BackupPlan, backUpByPlan } from '../domain/backup-schedule.ts';
import type { Vault } from '../domain/vault.ts';

/** How soon a backup is tried again that failed. */
const tryAgainAfter = 10 * minute;

/** Runs until `signal` is aborted. What goes wrong is logged, shown in the readiness details, and tried again. */
export async function runBackupScheduler(
  vault: Vault,
  plan: BackupPlan,
  order: Pick<BackupOrder, 'version' | 'verify'>,
  signal: AbortSignal,
): Promise<void> {
  const { world, log, backupHealth } = vault;
  while (!signal.aborted) {
    let wait: number = minute;
    try {
      const file = await backUpByPlan(vault, plan, { ...order, actor: system });
      if (file !== undefined) log.info({ file }, 'a backup was made');
      backupHealth.succeeded();
    } catch (error) {
      if (signal.aborted) return;
      backupHealth.failed();
      log.error({ err: error }, 'the backup failed; trying again in ten minutes');
      wait = tryAgainAfter;
    }
    await world.sleep(wait, signal);
  }
}
