/**
 * Lists a directory of scheduled backups by reading the files: a directory that was emptied, mounted or shared with
 * another vault needs no bookkeeping.
 */
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { listMasterKeys } from '../../db/tables/master-keys.ts';
import type { TimedContext } from '../contexts.ts';
import { vaultIdentity } from '../instance/vault-identity.ts';
import { readManifestPage } from './backup-file.ts';
import type { BackupAmounts, SetAside } from './backup-health.ts';
import type { Manifest } from './backup-manifest.ts';

/**
 * A scheduled backup: its number, its time (UTC milliseconds), what it holds, and the ids of its master keys. Backups
 * of older vaults, which had no numbers, have 0.
 */
export type ScheduledBackup = {
  readonly path: string;
  readonly number: number;
  readonly at: number;
  readonly holds: BackupAmounts;
  readonly keys: readonly string[];
};

/** Each list is newest first: by number, because the clock may have been wrong, then by time. */
export type BackupDirectory = {
  /** Backups of this vault, and so the only ones ever removed. */
  readonly own: readonly ScheduledBackup[];
  /** Backups of this vault, set aside because they hold much less than the one before. */
  readonly aside: readonly ScheduledBackup[];
  /** With this vault's master key, from a version without vault ids. */
  readonly unnamed: readonly ScheduledBackup[];
  /** With this vault's master key, by another vault since this one has its id: a clone shares the directory. */
  readonly clones: readonly ScheduledBackup[];
};

const scheduledName = /^vault-\d{8}T\d{6}Z(\.smaller)?\.backup$/;

/** `vault-20261121T180000Z.backup` */
export function backupName(at: number): string {
  return `vault-${formatTimestamp(at - (at % 1000)).replaceAll(/[-:]/g, '')}.backup`;
}

/** `vault-20261121T180000Z.smaller.backup`: the schedule neither counts nor removes it. */
export function asideName(at: number): string {
  return backupName(at).replace(/\.backup$/, '.smaller.backup');
}

/** The path under which a backup that was set aside counts like any other. */
export function acceptedPath(path: string): string {
  return path.replace(/\.smaller\.backup$/, '.backup');
}

/** Reads the directory. Throws OperatorError if it cannot be read. */
export async function backupsIn({ db, world }: TimedContext, directory: string): Promise<BackupDirectory> {
  const keyIds = new Set((await listMasterKeys(db.reader)).map(({ id }) => id));
  const identity = await vaultIdentity(db.reader);
  const found = { own: [], aside: [], unnamed: [], clones: [] } as Record<
    keyof BackupDirectory,
    ScheduledBackup[]
  >;
  for (const name of namesIn(directory).filter((name) => scheduledName.test(name))) {
    const path = join(directory, name);
    const page = manifestAt(path);
    if (typeof page !== 'object' || !page.manifest.key_ids.some((id) => keyIds.has(id))) continue;
    const { vault_id, created_at, key_ids: keys, number = 0 } = page.manifest;
    const backup = { path, number, at: Date.parse(created_at), holds: amountsIn(page.manifest), keys };
    if (vault_id === undefined) found.unnamed.push(backup);
    else if (vault_id === identity?.id)
      (basename(path) === basename(acceptedPath(path)) ? found.own : found.aside).push(backup);
    else if (identity !== undefined && backup.at > identity.since) found.clones.push(backup);
  }
  const now = world.now();
  for (const list of Object.values(found)) list.sort((a, b) => -order(a, b, now));
  return found;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    const message = `cannot read the backup directory ${directory}: ${describeSystemError(error)}`;
    throw new OperatorError(message, {
      hint: 'Check its disk, and its permissions. No backup was made.',
      cause: error,
    });
  }
}

/** Negative if `a` is older than `b`. Ignores a time in the future if the backup has no number. */
function order(a: ScheduledBackup, b: ScheduledBackup, now: number): number {
  const moment = ({ number, at }: ScheduledBackup) => (number === 0 && at > now ? 0 : at);
  return a.number - b.number || moment(a) - moment(b);
}

/** The ids of the master keys that the backups of this vault need; none if it has no backup. */
export function keysOf({ own, aside }: BackupDirectory): readonly string[] {
  return own.length === 0 ? [] : [...new Set([...own, ...aside].flatMap(({ keys }) => keys))];
}

/** Versions include those that the vault has pruned, which were not lost. */
export function amountsIn({
  counts,
  pruned_versions: pruned = 0,
}: Pick<Manifest, 'counts' | 'pruned_versions'>): BackupAmounts {
  return { certificates: counts.certificates ?? 0, versions: (counts.certificate_versions ?? 0) + pruned };
}

/** Whether certificates or versions are fewer than half. */
export function isMuchLess(now: BackupAmounts, before: BackupAmounts): boolean {
  return 2 * now.certificates < before.certificates || 2 * now.versions < before.versions;
}

/** The backup that a new one is compared with. */
export function backupBefore({ own, unnamed }: BackupDirectory): ScheduledBackup | undefined {
  return own[0] ?? unnamed[0];
}

/** The newest backup set aside, if no later one counts and it still holds much less than the one before. */
export function setAsideIn(found: BackupDirectory): SetAside | undefined {
  const [aside] = found.aside;
  const before = backupBefore(found);
  if (aside === undefined || before === undefined || isNewer(before, aside)) return undefined;
  return isMuchLess(aside.holds, before.holds)
    ? { path: aside.path, holds: aside.holds, before: before.holds }
    : undefined;
}

function isNewer(a: ScheduledBackup, b: ScheduledBackup): boolean {
  return a.number === b.number ? a.at > b.at : a.number > b.number;
}

/**
 * The ids of the master keys that a file needs to be restored; none if it is not a backup, or has its key sealed in it.
 */
export function keysNeededBy(path: string): readonly string[] {
  const page = manifestAt(path);
  if (typeof page !== 'object' || page.manifest.sealed_master_key !== undefined) return [];
  return page.manifest.key_ids;
}

function manifestAt(path: string): ReturnType<typeof readManifestPage> {
  try {
    return readManifestPage(path);
  } catch {
    // Deleted meanwhile, or not a backup of ours: do not count or remove it.
    return 'none';
  }
}
