/**
 * Backups by time: when the next is due, what it is called, and which old ones go. What is there is read from the files
 * themselves, so that a directory that was emptied, mounted anew or shared with another vault needs no bookkeeping.
 */
import { readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { formatTimestamp } from '../base/timestamp.ts';
import { listMasterKeys } from '../db/master-keys.ts';
import { type BackupOrder, backUpTo } from './backup.ts';
import { readManifestPage } from './backup-file.ts';
import type { Vault } from './vault.ts';

/** Where backups go, how often, and how many stay. */
export type BackupPlan = {
  readonly directory: string;
  /** Milliseconds. */
  readonly every: number;
  readonly keep: number;
};

/** A backup that the schedule has made. */
export type OwnBackup = { readonly path: string; readonly at: number };

const ownName = /^vault-\d{8}T\d{6}Z\.backup$/;

/**
 * Makes a backup if one is due, and removes those that are too many. Returns its path, or undefined where none was due.
 * Throws what `backUpTo` throws, and the system's error where the directory cannot be read.
 */
export async function backUpByPlan(
  vault: Vault,
  plan: BackupPlan,
  order: BackupOrder,
): Promise<string | undefined> {
  const now = vault.world.now();
  if (!isDue(await ownBackups(vault, plan.directory), plan, now)) return undefined;
  const path = join(plan.directory, backupName(now));
  await backUpTo(vault, order, path, 'refuse');
  const tooMany = (await ownBackups(vault, plan.directory)).slice(plan.keep);
  // Where the clock was ahead, older ones look newer than this one.
  for (const { path: old } of tooMany) if (old !== path) unlinkSync(old);
  return path;
}

/** `vault-20261121T180000Z.backup` */
export function backupName(at: number): string {
  return `vault-${formatTimestamp(at - (at % 1000)).replaceAll(/[-:]/g, '')}.backup`;
}

/** Due unless one was made within the last period. One from the future, made while the clock was ahead, does not count. */
export function isDue(own: readonly OwnBackup[], { every }: BackupPlan, now: number): boolean {
  return !own.some(({ at }) => at > now - every && at <= now);
}

/**
 * The backups in the directory that the schedule of this vault has made, newest first: known by their names, and by
 * manifests that name a master key which this vault has or had. Nothing else is ever removed.
 */
export async function ownBackups({ db }: Pick<Vault, 'db'>, directory: string): Promise<OwnBackup[]> {
  const keyIds = new Set((await listMasterKeys(db.reader)).map(({ id }) => id));
  const own: OwnBackup[] = [];
  for (const name of readdirSync(directory).filter((name) => ownName.test(name))) {
    const path = join(directory, name);
    const page = manifestAt(path);
    if (typeof page !== 'object' || !page.manifest.key_ids.some((id) => keyIds.has(id))) continue;
    own.push({ path, at: Date.parse(page.manifest.created_at) });
  }
  return own.sort((a, b) => b.at - a.at);
}

function manifestAt(path: string): ReturnType<typeof readManifestPage> {
  try {
    return readManifestPage(path);
  } catch {
    // Gone meanwhile, or somebody else's: then it is not ours to count or to remove.
    return 'none';
  }
}
