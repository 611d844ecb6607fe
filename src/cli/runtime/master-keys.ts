/**
 * Loads the master keys of a process from the key file and the files beside it. Sealed files are unlocked with a
 * passphrase from a file, a systemd credential or a prompt.
 */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDurableDirectory } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import { Keyring, keyFilesBeside } from '../../crypto/secrets/keyring.ts';
import { createMasterKey, type KeyFile, keyIn } from '../../crypto/secrets/master-key-file.ts';
import { PassphraseKey } from '../../crypto/secrets/passphrase-key.ts';
import { passphraseCost } from '../../crypto/secrets/passphrase-seal.ts';
import { passphraseIssue } from '../../domain/backup/backup.ts';
import type { Settings } from '../settings/settings.ts';
import { refuseExposedKeyFile } from '../terminal/private-files.ts';
import { askPassword } from '../terminal/prompt.ts';
import { type Readings, secretReadings } from '../terminal/secret-text.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { masterKeyFrom } from './master-key-command.ts';

type Places = Pick<Settings, 'masterKeyFile' | 'masterKeyPassphraseFile'>;

/** Prompts for the passphrase of the master key in `path`. Throws OperatorError without a terminal. */
export type PassphrasePrompt = (path: string) => Promise<Secret<string>>;

/** The prompt of a process without a terminal. */
export const failWithoutPrompt: PassphrasePrompt = async (path) => {
  throw new OperatorError(
    `the master key in ${path} is sealed, and there is no terminal to prompt for its passphrase`,
    {
      hint: 'Pass a file with the passphrase with --master-key-passphrase-file, or start the vault in a terminal.',
    },
  );
};

/** The prompt for this terminal. */
export function passphrasePrompt(terminal: Terminal): PassphrasePrompt {
  if (!terminal.stdin.isTTY) return failWithoutPrompt;
  return (path) => askPassword(terminal, `Passphrase for the master key in ${path}: `);
}

/** Unlocks sealed key files with a passphrase that is read once. */
export class Unlocking {
  readonly #places: Places;
  readonly #ask: PassphrasePrompt;
  #passphrases: Promise<Readings> | undefined;

  constructor(places: Places, ask: PassphrasePrompt) {
    this.#places = places;
    this.#ask = ask;
  }

  /** The lock that opens the file; undefined if it is not sealed. Throws OperatorError if the passphrase is wrong. */
  async lockOf(file: KeyFile): Promise<PassphraseKey | undefined> {
    if (file.kind === 'plain') return undefined;
    for (const passphrase of await this.#read(file.path)) {
      const lock = await PassphraseKey.for(passphrase, file.sealed);
      if (lock !== undefined && keyIn(file, lock) !== undefined) return lock;
    }
    const { masterKeyPassphraseFile: from } = this.#places;
    throw new OperatorError(`wrong passphrase for the master key in ${file.path}`, {
      hint: `${from === undefined ? 'Try again' : `Check the passphrase in ${from}`}. Nothing was changed.`,
    });
  }

  /** The lock for a new key file; undefined if no passphrase is configured. */
  async freshLock(world: World): Promise<PassphraseKey | undefined> {
    const { masterKeyFile, masterKeyPassphraseFile } = this.#places;
    if (masterKeyPassphraseFile === undefined) return undefined;
    const [passphrase] = await this.#read(masterKeyFile);
    const issue = passphraseIssue(passphrase);
    if (issue === undefined) return PassphraseKey.fresh(world, passphrase, passphraseCost);
    throw new OperatorError(`passphrase in ${masterKeyPassphraseFile} refused: ${issue}`, {
      hint: 'An attacker who finds the key file can guess offline. Write a longer passphrase to the file.',
    });
  }

  #read(path: string): Promise<Readings> {
    const { masterKeyPassphraseFile: from } = this.#places;
    this.#passphrases ??=
      from === undefined ? this.#ask(path).then((typed) => [typed]) : readPassphraseFile(from);
    return this.#passphrases;
  }
}

/**
 * The existing keys; undefined if there is no key file. Throws OperatorError if the key file cannot be opened or the
 * command prints no key.
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
  if (first === undefined) throw new Error('an unlocked key file holds no key');
  const keyring = new Keyring(masterKeyFile, first, lock);
  for (const { id } of files) keyring.find(id);
  return keyring;
}

/** Creates the key file with a new key, sealed if a passphrase is configured. */
export async function createKeyring(
  { masterKeyFile }: Pick<Settings, 'masterKeyFile'>,
  unlocking: Unlocking,
  world: World,
): Promise<Keyring> {
  const lock = await unlocking.freshLock(world);
  makeDirectory(dirname(masterKeyFile));
  const key = createMasterKey(masterKeyFile, world, lock);
  if (key !== undefined) return new Keyring(masterKeyFile, key, lock);
  // Another process created it at the same moment, with another salt.
  const keyring = await openKeyring({ masterKeyFile }, unlocking, world);
  if (keyring === undefined) throw new OperatorError(`the master key file ${masterKeyFile} disappeared`);
  return keyring;
}

/** Creates a directory that only the vault's user can access. Throws OperatorError. */
export function makeDirectory(path: string): void {
  try {
    makeDurableDirectory(path);
  } catch (error) {
    throw new OperatorError(`cannot create directory ${path}: ${describeSystemError(error)}`, {
      hint: 'Choose a directory that this user can write to with --data-dir.',
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
    throw new OperatorError(
      `cannot read the passphrase of the master key: ${path}: ${describeSystemError(error)}`,
      {
        hint: 'Name a file that this user can read with --master-key-passphrase-file.',
        cause: error,
      },
    );
  }
  if (passphrases !== undefined) return passphrases;
  throw new OperatorError(`${path} is empty`, { hint: 'Write the passphrase to it, on one line.' });
}
