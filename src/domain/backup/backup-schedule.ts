/**
 * Scheduled backups: when the next is due, its name, and which old ones are removed. A backup that holds much less than
 * the one before is set aside and removes nothing: the vault may have lost what the old ones still hold.
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
  keysOf,
  type ScheduledBackup,
  setAsideIn,
} from './backup-directory.ts';
import type { SetAside } from './backup-health.ts';
import { isRotatedSince } from './backup-keys.ts';

/** Where backups go, how often, and how many are kept. */
export type BackupPlan = {
  readonly directory: string;
  /** Milliseconds. */
  readonly every: number;
  readonly keep: number;
};

/** State of the directory after a check. */
export type PlanOutcome = {
  /** The path of the new backup; undefined if none was due. */
  readonly made: string | undefined;
  readonly setAside: SetAside | undefined;
  /** The newest backup here by another vault with this master key. */
  readonly clone: string | undefined;
  /** When the next one is due, in UTC milliseconds. */
  readonly nextAt: number;
  /** The ids of the master keys that the backups of this vault need. */
  readonly keys: readonly string[];
};

/**
 * Creates a backup if one is due or the master key was rotated since the last one, and removes surplus ones. Throws
 * what `backUpInto` throws, and OperatorError if the directory cannot be read.
 */
export async function backUpByPlan(
  vault: SecretsContext & LogContext,
  plan: BackupPlan,
  order: BackupOrder,
): Promise<PlanOutcome> {
  const now = vault.world.now();
  const found = await backupsIn(vault, plan.directory);
  const dueAt = nextDueAt([...found.own, ...found.aside], plan, now);
  if (dueAt > now && !(await isRotatedSince(vault, keysOf(found)))) return outcome(found, dueAt);
  const before = backupBefore(found)?.holds;
  const numbered = { ...order, number: nextNumber(found) };
  const { path, as } = await backUpInto(vault, numbered, plan.directory, (manifest) =>
    before !== undefined && isMuchLess(amountsIn(manifest), before)
      ? { name: freeName(plan, now, asideName), as: 'set aside' }
      : { name: freeName(plan, now, backupName), as: 'the last' },
  );
  const after = await backupsIn(vault, plan.directory);
  if (as === 'the last') removeTooMany(after.own, plan, path);
  else removeLesser(after.aside, plan);
  return outcome(after, nextDueAt([...after.own, ...after.aside], plan, now), path);
}

/** Two rotations of the master key in one second create two backups; the second is named after the next second. */
function freeName(plan: BackupPlan, now: number, nameAt: (at: number) => string): string {
  const name = nameAt(now);
  return existsSync(join(plan.directory, name)) ? freeName(plan, now + second, nameAt) : name;
}

/**
 * When the next backup is due: one period after the last, or now if overdue. A backup from the future, made while the
 * clock was ahead, does not count.
 */
export function nextDueAt(
  own: readonly Pick<ScheduledBackup, 'at'>[],
  { every }: Pick<BackupPlan, 'every'>,
  now: number,
): number {
  const last = Math.max(...own.map(({ at }) => at).filter((at) => at <= now));
  return Math.max(now, last + every);
}

/** The number of the next backup. The clock may be wrong, and a restored database does not know the latest numbers. */
function nextNumber({ own, aside }: BackupDirectory): number {
  return 1 + Math.max(0, ...[...own, ...aside].map(({ number }) => number));
}

function removeTooMany(own: readonly ScheduledBackup[], { keep }: BackupPlan, made: string): void {
  for (const { path } of own.slice(keep)) if (path !== made) removeFile(path);
}

/** Removes only backups set aside that hold no more than the newest one. */
function removeLesser(aside: readonly ScheduledBackup[], { keep }: BackupPlan): void {
  const [newest, ...older] = aside;
  if (newest === undefined) return;
  for (const { path, holds } of older.slice(keep - 1)) {
    const isLesser =
      holds.certificates <= newest.holds.certificates && holds.versions <= newest.holds.versions;
    if (isLesser) removeFile(path);
  }
}

function outcome(found: BackupDirectory, nextAt: number, made?: string): PlanOutcome {
  const clone = found.clones[0]?.path;
  return { made, setAside: setAsideIn(found), clone, nextAt, keys: keysOf(found) };
}
