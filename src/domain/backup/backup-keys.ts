/** Finds backups that need a master key they do not contain, so that its last copy is not removed by mistake. */
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { currentMasterKey } from '../../db/tables/master-keys.ts';
import type { DatabaseContext } from '../contexts.ts';
import { isRotating } from '../master-key/master-key-rotation.ts';
import { keysNeededBy } from './backup-directory.ts';

/**
 * The paths of the backups in a directory, under any name, that cannot be restored without this key. Throws system
 * errors.
 */
export function backupsNeeding(directory: string, keyId: string): string[] {
  const files = readdirSync(directory, { withFileTypes: true }).filter((entry) => !entry.isDirectory());
  return files
    .map(({ name }) => join(directory, name))
    .filter((path) => keysNeededBy(path).includes(keyId))
    .sort();
}

/** Throws OperatorError if backups in the directory need the key, or if the directory cannot be read. */
export function refuseNeededKey(directory: string, keyId: string): void {
  let needing: string[];
  try {
    needing = backupsNeeding(directory, keyId);
  } catch (cause) {
    throw new OperatorError(
      `cannot read the backup directory ${directory}; its backups may need master key ${keyId}`,
      {
        hint: 'Nothing was removed. Make the directory readable, or add --force.',
        cause,
      },
    );
  }
  if (needing.length === 0) return;
  throw new OperatorError(`${lossOf(needing)} without master key ${keyId}`, {
    hint: 'Nothing was removed. Wait until newer backups replace them, or accept the loss with --force.',
  });
}

/** `3 backups in /backups cannot be restored`, with the names of the newest. */
export function lossOf(paths: readonly string[]): string {
  const count = paths.length === 1 ? '1 backup' : `${paths.length} backups`;
  const names = paths.slice(-3).map((path) => basename(path));
  return `${count} (${names.join(', ')}${paths.length > 3 ? ' …' : ''}) cannot be restored`;
}

/**
 * Whether the vault seals with a key that no scheduled backup needs (`keysOf`): after a rotation, until the next
 * backup.
 */
export async function isRotatedSince(vault: DatabaseContext, keys: readonly string[]): Promise<boolean> {
  if (keys.length === 0 || (await isRotating(vault))) return false;
  const current = await currentMasterKey(vault.db.reader);
  return current !== undefined && !keys.includes(current);
}
