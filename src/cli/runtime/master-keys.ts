/**
 * How a process comes to its master keys: from the key file and those beside it, unlocked by a passphrase that is in a file,
 * a credential of the service manager, or somebody's head.
 */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDurableDirectory } from '../../base/durable-file.ts';
import { wordsOf } from '../../base/full-disk.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { Keyring, keyFilesBeside } from '../../crypto/keyring.ts';
import { createMasterKey, type KeyFile, keyIn } from '../../crypto/master-key-file.ts';
import { PassphraseKey } from '../../crypto/passphrase-key.ts';
import { passphraseCost } from '../../crypto/passphrase-seal.ts';
import { passphraseComplaint } from '../../domain/backup/backup.ts';
import type { Settings } from '../settings/settings.ts';
import { refuseExposedKeyFile } from '../terminal/private-files.ts';
import { askPassword } from '../terminal/prompt.ts';
import { type Readings, secretReadings } from '../terminal/secret-text.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { masterKeyFrom } from './master-key-command.ts';

type Places = Pick<Settings, 'masterKeyFile' | 'masterKeyPassphraseFile'>;

/** Asks whoever is there for the passphrase of the master key in `path`. Throws OperatorError where nobody is. */
export type PassphrasePrompt = (path: string) => Promise<Secret<string>>;

/** Where nobody can be asked. */
export const failWithoutPrompt: PassphrasePrompt = async (path) => {
  throw new OperatorError(`the master key in ${path} is sealed under a passphrase`, {
    hint: 'Name the file that holds the passphrase with --master-key-passphrase-file, or start at a terminal (without --workers).',
  });
};

/** Whoever sits at the terminal, if anybody does. */
export function askAt(terminal: Terminal): PassphrasePrompt {
  if (!terminal.stdin.isTTY) return failWithoutPrompt;
  return (path) => askPassword(terminal, `Passphrase of the master key in ${path}: `);
}

/** Opens key files that are sealed, with a passphrase that is read once. */
export class Unlocking {
  readonly #places: Places;
  readonly #ask: PassphrasePrompt;
  #passphrases: Promise<Readings> | undefined;

  constructor(places: Places, ask: PassphrasePrompt) {
    this.#places = places;
    this.#ask = ask;
  }

  /** What opens the file; undefined where it is not sealed. Throws OperatorError where the passphrase is another. */
  async lockOf(file: KeyFile): Promise<PassphraseKey | undefined> {
    if (file.kind === 'plain') return undefined;
    for (const passphrase of await this.#read(file.path)) {
      const lock = await PassphraseKey.for(passphrase, file.sealed);
      if (lock !== undefined && keyIn(file, lock) !== undefined) return lock;
    }
    const { masterKeyPassphraseFile: from } = this.#places;
    throw new OperatorError(`the passphrase does not open the master key in ${file.path}`, {
      hint: `${from === undefined ? 'Try again' : `Look at ${from}`}; nothing was changed.`,
    });
  }

  /** The lock of a key file that is yet to be made; undefined where no passphrase is configured. */
  async freshLock(world: World): Promise<PassphraseKey | undefined> {
    const { masterKeyFile, masterKeyPassphraseFile } = this.#places;
    if (masterKeyPassphraseFile === undefined) return undefined;
    const [passphrase] = await this.#read(masterKeyFile);
    const complaint = passphraseComplaint(passphrase);
    if (complaint === undefined) return PassphraseKey.fresh(world, passphrase, passphraseCost);
    throw new OperatorError(
      `the passphrase in ${masterKeyPassphraseFile} cannot be used for a new master key: ${complaint}`,
      { hint: 'Whoever finds the file can guess for years. Write a longer one there.' },
    );
  }

  #read(path: string): Promise<Readings> {
    const { masterKeyPassphraseFile: from } = this.#places;
    this.#passphrases ??=
      from === undefined ? this.#ask(path).then((typed) => [typed]) : readPassphraseFile(from);
    return this.#passphrases;
  }
}

/**
 * The keys that are there; undefined where there is no file. Throws OperatorError where the key file does not open, or the
 * command gives no key.
 */
export async function openKeyring(
  settings: Pick<Settings, 'masterKeyFile' | 'masterKeyCommand' | 'credentialsDir'>,
  unlocking: Unlocking,
  world: World,
): Promise<Keyring | undefined> {
  const { masterKeyFile, masterKeyCommand } = settings;
  if (masterKeyCommand !== undefined) {
    return new Keyring(masterKeyFile, await masterKeyFrom(world, masterKeyCommand, settings));
  }
  const files = keyFilesBeside(masterKeyFile);
  const [own] = files;
  if (own === undefined) return undefined;
  const lock = await unlocking.lockOf(own);
  const first = keyIn(own, lock);
  if (first === undefined) throw new Error('a key file that was unlocked holds no key');
  const keyring = new Keyring(masterKeyFile, first, lock);
  for (const { id } of files) keyring.find(id);
  return keyring;
}

/** Makes the key file with a new key, sealed where a passphrase is configured. */
export async function createKeyring(
  { masterKeyFile }: Pick<Settings, 'masterKeyFile'>,
  unlocking: Unlocking,
  world: World,
): Promise<Keyring> {
  const lock = await unlocking.freshLock(world);
  makeDirectory(dirname(masterKeyFile));
  const key = createMasterKey(masterKeyFile, world, lock);
  if (key !== undefined) return new Keyring(masterKeyFile, key, lock);
  // Another process made it at this moment, under a salt of its own.
  const keyring = await openKeyring({ masterKeyFile }, unlocking, world);
  if (keyring === undefined) throw new OperatorError(`the master key file ${masterKeyFile} vanished`);
  return keyring;
}

/** Makes a directory of the vault's, for its user alone. Throws OperatorError. */
export function makeDirectory(path: string): void {
  try {
    makeDurableDirectory(path);
  } catch (error) {
    throw new OperatorError(`the directory ${path} cannot be made: ${wordsOf(error)}`, {
      hint: 'Choose a directory that this user may write to, with --data-dir.',
      cause: error,
    });
  }
}

async function readPassphraseFile(path: string): Promise<Readings> {
  refuseExposedKeyFile(path);
  let passphrases: Readings | undefined;
  try {
    passphrases = secretReadings(readFileSync(path));
  } catch (error) {
    throw new OperatorError(`the passphrase of the master key cannot be read: ${(error as Error).message}`, {
      hint: 'Name a file that this user may read with --master-key-passphrase-file.',
      cause: error,
    });
  }
  if (passphrases !== undefined) return passphrases;
  throw new OperatorError(`${path} holds no passphrase`, { hint: 'Write it there, on one line.' });
}
