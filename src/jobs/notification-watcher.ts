/** Looks once a minute for what the clock alone brings about: ends that come near, backups that do not come, digests. */
import { minute } from '../base/duration.ts';
import type { BackupPlan } from '../domain/backup/backup-schedule.ts';
import type { LoggedContext } from '../domain/contexts.ts';
import { queueDigests } from '../domain/notifications/notification-digest.ts';
import { type DiskContext, notifyDiskSpace } from '../domain/notifications/notification-disk.ts';
import {
  type BackupWatchContext,
  type ExpiryMarks,
  notifyBackups,
  notifyExpiries,
} from '../domain/notifications/notification-watch.ts';

/** Certificates and API keys that a minute looks at, tens of milliseconds of work; with more it takes several minutes. */
const endsPerMinute = 15_000;

/** Runs until `signal` is aborted. What goes wrong is logged and tried again a minute later. */
export async function runNotificationWatcher(
  vault: LoggedContext & DiskContext & BackupWatchContext,
  plan: BackupPlan | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { world, log } = vault;
  const since = world.now();
  const lookedAt: ExpiryMarks = { certificates: 0, api_keys: 0 };
  while (!signal.aborted) {
    try {
      await notifyExpiries(vault, lookedAt, endsPerMinute);
      await notifyBackups(vault, plan, since);
      await notifyDiskSpace(vault);
      await queueDigests(vault);
    } catch (error) {
      log.error({ err: error }, 'what is to be told could not be looked up; trying again');
    }
    await world.sleep(minute, signal);
  }
}
