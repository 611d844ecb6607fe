/**
 * The file that holds the master key: made once, durably, never overwritten. Whoever loses it loses every private key,
 * so nothing here ever writes to a name that exists.
 */
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { OperatorError } from '../base/operator-error.ts';
import { Secret } from '../base/secret.ts';
import type { World } from '../base/world.ts';
import { MasterKey, masterKeySize } from './master-key.ts';

/** The key in the file, or undefined where there is no file. Throws OperatorError where it cannot be a key. */
export function readMasterKey(path: string): MasterKey | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new OperatorError(`the master key file ${path} cannot be read: ${(error as Error).message}`, {
      hint: 'Run the command as the user that owns the vault, or name the right file with --master-key-file.',
      cause: error,
    });
  }
  if (bytes.length !== masterKeySize) {
    throw new OperatorError(`${path} holds ${bytes.length} bytes; a master key has ${masterKeySize}`, {
      hint: 'Put the original file back, or name the right one with --master-key-file.',
    });
  }
  return new MasterKey(new Secret(bytes));
}

/** Makes the file with 32 random bytes, mode 0600, fsynced with its directory; a file that appears first wins. */
export function createMasterKey(path: string, world: World): MasterKey {
  const draft = join(dirname(path), `.master.key.${world.randomBytes(8).toString('hex')}`);
  try {
    const file = openSync(draft, 'wx', 0o600);
    try {
      writeSync(file, world.randomBytes(masterKeySize));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    try {
      linkSync(draft, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      unlinkSync(draft);
    }
    syncDirectory(dirname(path));
  } catch (error) {
    throw new OperatorError(`the master key file ${path} cannot be made: ${(error as Error).message}`, {
      hint: 'Choose a directory that this user may write to, with --data-dir or --master-key-file.',
      cause: error,
    });
  }
  const key = readMasterKey(path);
  if (key === undefined) throw new OperatorError(`the master key file ${path} vanished while it was made`);
  return key;
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
