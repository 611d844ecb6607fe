/**
 * The key files of a rotation: the next key is `master.key.next`, and a replaced one is `master.key.` and its name. The
 * database records which of them seals, so that no order of renames can lose a key.
 */
import { linkSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import {
  type Keyring,
  keyFilesBeside,
  nextKeyPath,
  pastKeyPath,
  realPath,
} from '../../crypto/secrets/keyring.ts';
import type { MasterKey } from '../../crypto/secrets/master-key.ts';
import {
  keyFileContent,
  keyIn,
  newMasterKey,
  readKeyFile,
  writeKeyFile,
} from '../../crypto/secrets/master-key-file.ts';
import { currentMasterKey } from '../../db/tables/master-keys.ts';
import type { DatabaseContext, KeyringContext } from '../contexts.ts';

/**
 * Returns the next key from its file: one that is already there, or `given`, or a new one. Throws OperatorError if it
 * cannot be written there, or the file holds another.
 */
export function placeNextKey(keyring: Keyring, world: World, given: MasterKey | undefined): MasterKey {
  const path = nextKeyPath(keyring.path);
  if (given !== undefined && keyring.find(given.name) !== undefined) return given;
  if (readKeyFile(path) === undefined) {
    const content = keyFileContent(world, given ?? newMasterKey(world), keyring.lock);
    try {
      // Another process may create it first; then both continue with that one.
      writeKeyFile(world, path, content, 'keep');
    } catch (error) {
      throw new OperatorError(
        `cannot write the next master key beside the current one: ${messageOf(error)}`,
        {
          hint:
            `Generate the key yourself (head -c 32 /dev/urandom), store it as ${path} for the server and this command, ` +
            'restart the server if it cannot see the file otherwise, and run the command again.',
          cause: error,
        },
      );
    }
  }
  const file = readKeyFile(path);
  // A concurrent rotation has just made it the current one.
  if (file === undefined) return placeNextKey(keyring, world, given);
  const next = keyIn(file, keyring.lock);
  if (next === undefined) {
    throw new OperatorError(`${path} is not sealed under the passphrase of the current master key`, {
      hint: 'Remove the file, or seal it under the same passphrase.',
    });
  }
  if (given !== undefined && next.name !== given.name) {
    throw new OperatorError(`${path} already holds another key (${next.name})`, {
      hint: 'Omit --new-master-key-file to use that key, or remove the file.',
    });
  }
  // It replaces a sealed key, so do not leave it unsealed.
  if (file.kind === 'plain' && keyring.lock !== undefined) {
    writeKeyFile(world, path, keyFileContent(world, next, keyring.lock), 'replace');
  }
  keyring.add(next);
  return next;
}

/** Moves the current key to the key file, if a restore or an interrupted rotation has left it elsewhere. */
export async function settleKeyFile({ db, keyring }: DatabaseContext & KeyringContext): Promise<void> {
  if (keyring.path === '-' || keyring.inFile === keyring.current.name) return;
  await db.write(async (writer) => {
    settleKeyFiles(keyring, (await currentMasterKey(writer)) ?? keyring.inFile);
  });
}

/**
 * Renames the current key to the name of the key file, and the previous ones to their own. The caller holds the write
 * lock of the database. Returns `left` if the files cannot be changed, for example credentials or a full disk: nothing
 * depends on it.
 */
export function settleKeyFiles(keyring: Keyring, current: string): 'settled' | 'left' {
  const files = keyFilesBeside(keyring.path);
  const [own] = files;
  if (own === undefined || own.id === current) return 'settled';
  const source = files.find(({ id }) => id === current);
  if (source === undefined) return 'left';
  const main = realPath(keyring.path);
  const past = pastKeyPath(keyring.path, own.id);
  try {
    if (readKeyFile(past) === undefined) linkSync(main, past);
    syncPath(dirname(main));
    renameSync(source.path, main);
    syncPath(dirname(main));
    return 'settled';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) return 'left';
    throw error;
  }
}

function messageOf(error: unknown): string {
  return describeSystemError((error as Error).cause ?? error);
}
