/**
 * Backups by time: when the next is due, what it is called, and which old ones are removed. A backup that holds much less
 * than the one before is set aside, and removes nothing: the vault may have lost what the old ones still hold.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { removeFile } from '../../base/durable-file.ts';
import { second } from '../../base/duration.ts';
import type { LogContext, SecretsContext } from '../contexts.ts';
import { type BackupOrder, backUpInto } from './backup.ts';
import {
  amountsIn,
  asideName,
  type BackupDirectory,
  backupBefore,
  backupName,
  backupsIn,
  isMuchLess,
  type ScheduledBackup,
  setAsideIn,
} from './backup-directory.ts';
import type { SetAside } from './backup-health.ts';
import { isRotatedSince } from './backup-keys.ts';

/** Where backups go, how often, and how many stay. */
export type BackupPlan = {
  readonly directory: string;
  /** Milliseconds. */
  readonly every: number;
  readonly keep: number;
};

/** How the directory is after a look. */
export type PlanOutcome = {
  /** The path of the backup that was made; undefined where none was due. */
  readonly made: string | undefined;
  readonly setAside: SetAside | undefined;
  /** The newest backup that another vault with this master key has made here. */
  readonly clone: string | undefined;
};

/**
 * Makes a backup if one is due or the master key was rotated since the last one, and removes those that are too many. Throws what `backUpInto` throws, and the system's error
 * where the directory cannot be read.
 */
export async function backUpByPlan(
  vault: SecretsContext & LogContext,
  plan: BackupPlan,
  order: BackupOrder,
): Promise<PlanOutcome> {
  const now = vault.world.now();
  const found = await backupsIn(vault, plan.directory);
  const isTime = isDue([...found.own, ...found.aside], plan, now);
  if (!isTime && !(await isRotatedSince(vault, found))) return outcome(found);
  const before = backupBefore(found)?.holds;
  const { path, as } = await backUpInto(vault, order, plan.directory, (manifest) =>
    before !== undefined && isMuchLess(amountsIn(manifest), before)
      ? { name: freeName(plan, now, asideName), as: 'set aside' }
      : { name: freeName(plan, now, backupName), as: 'the last' },
  );
  const after = await backupsIn(vault, plan.directory);
  if (as === 'the last') removeTooMany(after.own, plan, path);
  else removeLesser(after.aside, plan);
  return outcome(after, path);
}

/** Two rotations of the master key in one second make two backups: the second one is named after the next second. */
function freeName(plan: BackupPlan, now: number, nameAt: (at: number) => string): string {
  const name = nameAt(now);
  return existsSync(join(plan.directory, name)) ? freeName(plan, now + second, nameAt) : name;
}

/** Due unless one was made within the last period. One from the future, made while the clock was ahead, does not count. */
export function isDue(
  own: readonly Pick<ScheduledBackup, 'at'>[],
  { every }: Pick<BackupPlan, 'every'>,
  now: number,
): boolean {
  return !own.some(({ at }) => at > now - every && at <= now);
}

/** Where the clock was ahead, older ones look newer than the one just made. */
function removeTooMany(own: readonly ScheduledBackup[], { keep }: BackupPlan, made: string): void {
  for (const { path } of own.slice(keep)) if (path !== made) removeFile(path);
}

/** Of the backups set aside, only those that hold no more than the newest one are removed. */
function removeLesser(aside: readonly ScheduledBackup[], { keep }: BackupPlan): void {
  const [newest, ...older] = aside;
  if (newest === undefined) return;
  for (const { path, holds } of older.slice(keep - 1)) {
    const isLesser =
      holds.certificates <= newest.holds.certificates && holds.versions <= newest.holds.versions;
    if (isLesser) removeFile(path);
  }
}

function outcome(found: BackupDirectory, made?: string): PlanOutcome {
  return { made, setAside: setAsideIn(found), clone: found.clones[0]?.path };
}
