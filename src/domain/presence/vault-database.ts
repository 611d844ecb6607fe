/** The database of a data directory: what is refused before it is opened, and how commands open it. */
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import type { World } from '../../base/world.ts';
import type { Keyring } from '../../crypto/keyring.ts';
import { Database } from '../../db/database.ts';
import { DatabaseFile } from '../../db/database-file.ts';
import { refuseIncompleteDatabase } from './vault-mark.ts';

/** An open database. The caller that opens it closes it. */
export type VaultDatabase = Database;

/** Throws OperatorError where the data directory is on a file system that damages databases. */
export function refuseUnsafePlace(dataDir: string): void {
  new DatabaseFile(join(dataDir, 'vault.db')).refuseUnsafePlace();
}

/**
 * Throws OperatorError or StorageError where the file at `path`, which must have content, is no whole database of a vault.
 * Returns what `refuseIncompleteDatabase` says of its mark. Changes nothing.
 */
export function refuseUnusableDatabase(
  path: string,
  keyring: Pick<Keyring, 'find'>,
): ReturnType<typeof refuseIncompleteDatabase> {
  new DatabaseFile(path).refuseEmpty();
  return refuseIncompleteDatabase(path, keyring);
}

/**
 * Opens the database at `path`, creates it where it is missing, and migrates it. With `startThread`, all writes run on the
 * thread that it starts. Throws as `Database.open`.
 */
export function openDatabase(
  path: string,
  world: World,
  options: { readonly startThread?: ((library: string | undefined) => Worker | undefined) | undefined } = {},
): Promise<VaultDatabase> {
  return Database.open(path, world, options);
}

/** Reads through the whole database at `path` without changing it. Throws what is wrong with it. */
export function examineVaultDatabase(path: string): ReturnType<DatabaseFile['examine']> {
  return new DatabaseFile(path).examine();
}
