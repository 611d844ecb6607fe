/** Looks once a minute for what the clock alone brings about: ends that come near, backups that do not come, digests. */
import { minute } from '../base/duration.ts';
import type { BackupPlan } from '../domain/backup-schedule.ts';
import { queueDigests } from '../domain/notification-digest.ts';
import { tellOfBackups, tellOfEnds } from '../domain/notification-watch.ts';
import type { Vault } from '../domain/vault.ts';

/** Runs until `signal` is aborted. What goes wrong is logged and tried again a minute later. */
export async function runNotificationWatcher(
  vault: Vault,
  plan: BackupPlan | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { world, log } = vault;
  const since = world.now();
  while (!signal.aborted) {
    try {
      await tellOfEnds(vault);
      await tellOfBackups(vault, plan, since);
      await queueDigests(vault);
    } catch (error) {
      log.error({ err: error }, 'what is to be told could not be looked up; trying again');
    }
    await world.sleep(minute, signal);
  }
}
