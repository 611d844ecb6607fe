/**
 * Whether the vault is ready: three checks that reveal no paths, with the state of backup and disk. They write nothing,
 * unless the last download could not be recorded.
 */

import { backupAge } from '../backup/backup-age.ts';
import type { BackupHealth } from '../backup/backup-health.ts';
import type { KeyringContext, LogContext, LoggedContext } from '../contexts.ts';
import type { DiskSpace, SpaceState } from '../health/disk-space.ts';
import type { Heartbeat } from '../health/heartbeat.ts';
import { masterKeyFits } from '../master-key/master-key-check.ts';

/** What can keep the vault from its work. */
export type ReadinessContext = LoggedContext &
  KeyringContext & {
    readonly disk: DiskSpace;
    readonly renewalHeartbeat: Heartbeat;
    readonly backupHealth: BackupHealth;
    readonly failedChecks: FailedChecks;
  };

/** The checks that failed when they ran last, so that the log has one line when that begins and one when it ends. */
export type FailedChecks = Set<string>;

export type CheckResult = 'ok' | 'failed';

export type Readiness = {
  status: 'ready' | 'not_ready';
  checks: { database: CheckResult; master_key: CheckResult; renewal_engine: CheckResult };
  details: {
    /** Does not affect readiness: no request depends on a backup. */
    backup: { state: 'none' | 'ok' | 'failed'; age_seconds: number | null };
    /** `critical` when refusals are only counted, not recorded. Does not affect readiness. */
    disk: { state: SpaceState };
  };
};

/**
 * Queries the database, opens the check blob of the master key and reads the heartbeat of the renewal engine. With
 * `mustRecord`, a database that takes no audit events has failed, too: polls are still answered then, but no download
 * is.
 */
export async function readiness(
  vault: ReadinessContext,
  { mustRecord = true }: { readonly mustRecord?: boolean } = {},
): Promise<Readiness> {
  // Together: a server that does not answer would otherwise be waited for three times.
  const [database, masterKey, backup] = await Promise.all([
    succeeds(vault, 'database', async () => {
      await vault.db.generation();
      vault.db.requireProgress();
      if (mustRecord) await vault.db.requireRecording(vault.world);
    }),
    succeeds(vault, 'master_key', async () => {
      if ((await masterKeyFits(vault)) !== 'fits')
        throw new Error('the master key does not open its check blob');
    }),
    backupDetails(vault),
  ]);
  const checks = {
    database,
    master_key: masterKey,
    renewal_engine: vault.renewalHeartbeat.isFresh ? ('ok' as const) : ('failed' as const),
  };
  const ready = Object.values(checks).every((result) => result === 'ok');
  const details = { backup, disk: { state: vault.disk.state() } };
  return { status: ready ? 'ready' : 'not_ready', checks, details };
}

/** `failed` if the last scheduled backup of this process failed; `none` also if the database cannot be read. */
async function backupDetails(vault: ReadinessContext): Promise<Readiness['details']['backup']> {
  const age = await backupAge(vault).catch(() => undefined);
  const state = vault.backupHealth.isFailing ? 'failed' : age === undefined ? 'none' : 'ok';
  return { state, age_seconds: age === undefined ? null : Math.floor(age / 1000) };
}

async function succeeds(
  { log, failedChecks }: LogContext & Pick<ReadinessContext, 'failedChecks'>,
  check: string,
  work: () => Promise<unknown>,
): Promise<CheckResult> {
  try {
    await work();
    if (failedChecks.delete(check)) log.info({ check }, 'readiness check succeeds again');
    return 'ok';
  } catch (error) {
    if (!failedChecks.has(check)) log.warn({ err: error, check }, 'readiness check failed');
    failedChecks.add(check);
    return 'failed';
  }
}
