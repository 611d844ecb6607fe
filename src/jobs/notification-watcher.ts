/**
 * Checks once a minute for notifications that are due by time: expiry, states of deployments and endpoints, overdue
 * backups, low disk space, digests.
 */
import { minute } from '../base/duration.ts';
import type { BackupPlan } from '../domain/backup/backup-schedule.ts';
import type { LoggedContext } from '../domain/contexts.ts';
import { notifyDeployments } from '../domain/notifications/notification-deployments.ts';
import { queueDigests } from '../domain/notifications/notification-digest.ts';
import { type DiskContext, notifyDiskSpace } from '../domain/notifications/notification-disk.ts';
import { notifyEndpoints } from '../domain/notifications/notification-endpoints.ts';
import { notifyPrivateCas } from '../domain/notifications/notification-private-ca.ts';
import {
  type BackupWatchContext,
  type ExpiryCursor,
  notifyBackups,
  notifyExpiries,
} from '../domain/notifications/notification-watch.ts';

/** Rows of each table that are scanned per minute: tens of milliseconds of work; the rest follows later. */
const rowsPerMinute = 15_000;

/** Runs until `signal` is aborted. Logs errors and retries a minute later. */
export async function runNotificationWatcher(
  vault: LoggedContext & DiskContext & BackupWatchContext,
  plan: BackupPlan | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { world, log } = vault;
  const since = world.now();
  const cursor: ExpiryCursor = { certificates: 0, api_keys: 0 };
  const deployments = { after: 0 };
  const endpoints = { after: 0 };
  while (!signal.aborted) {
    try {
      await notifyExpiries(vault, cursor, rowsPerMinute);
      await notifyPrivateCas(vault);
      await notifyDeployments(vault, { cursor: deployments, since, most: rowsPerMinute });
      await notifyEndpoints(vault, endpoints, rowsPerMinute);
      await notifyBackups(vault, plan, since);
      await notifyDiskSpace(vault);
      await queueDigests(vault);
    } catch (error) {
      log.error({ err: error }, 'failed to query pending notifications; retrying');
    }
    await world.sleep(minute, signal);
  }
}
