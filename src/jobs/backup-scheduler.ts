/** Creates scheduled backups. Checks once a minute, so that it copes with clock changes and suspended machines. */
import { minute } from '../base/duration.ts';
import type { BackupHealth } from '../domain/backup/backup-health.ts';
import { isRotatedSince } from '../domain/backup/backup-keys.ts';
import type { PlanOutcome } from '../domain/backup/backup-schedule.ts';
import type { LoggedContext } from '../domain/contexts.ts';

/** Delay after a failed backup. */
const retryDelay = 10 * minute;

/** How often the directory is read although nothing is due: someone may have removed a backup. */
const maxPollInterval = 10 * minute;

type BackupsContext = LoggedContext & { readonly backupHealth: BackupHealth };

type Look = { readonly at: number; readonly outcome: PlanOutcome };

/**
 * Runs until `signal` is aborted. `backUp` reads the backup directory and makes the backup that is due, in another
 * process. Logs errors, shows them in the readiness details, and retries.
 */
export async function runBackupScheduler(
  vault: BackupsContext,
  backUp: (signal: AbortSignal) => Promise<PlanOutcome>,
  signal: AbortSignal,
): Promise<void> {
  const { world, log, backupHealth } = vault;
  let last: Look | undefined;
  while (!signal.aborted) {
    let wait: number = minute;
    try {
      if (last === undefined || (await mustLook(vault, last))) {
        last = { at: world.now(), outcome: await backUp(signal) };
        logOutcome(vault, last.outcome);
        backupHealth.looked(last.outcome.setAside);
      }
    } catch (error) {
      if (signal.aborted) return;
      last = undefined;
      backupHealth.failed();
      log.error({ err: error }, 'backup failed; retrying in 10 minutes');
      wait = retryDelay;
    }
    await world.sleep(wait, signal);
  }
}

/**
 * Whether a backup is due, or the directory was read long ago. A backup that was set aside may be accepted at any time.
 */
async function mustLook(vault: BackupsContext, { at, outcome }: Look): Promise<boolean> {
  const now = vault.world.now();
  if (now >= outcome.nextAt || now < at || now >= at + maxPollInterval) return true;
  return outcome.setAside !== undefined || (await isRotatedSince(vault, outcome.keys));
}

/** Logs every backup, and repeats warnings with each one. */
function logOutcome({ log }: BackupsContext, { made: file, setAside, clone }: PlanOutcome): void {
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
