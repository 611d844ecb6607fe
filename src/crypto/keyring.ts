/**
 * The master keys that this process can find: in the key file, and in the files beside it that a rotation makes. One of them
 * seals; each opens what it has sealed. A key that is not known yet is looked for again, so that a running server finds the
 * next one without being told.
 */
import { readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { MasterKey } from './master-key.ts';
import { type KeyFile, keyIn, readKeyFile } from './master-key-file.ts';
import type { PassphraseKey } from './passphrase-key.ts';

export class Keyring {
  /** The key file; the others are beside it. */
  readonly path: string;
  /** What the passphrase of the key file opens, where it is sealed under one. */
  readonly lock: PassphraseKey | undefined;
  /** The name of the key in the key file, when it was read. */
  readonly inFile: string;
  /** By name. A key that was found stays, so that what was read before its file went can still be opened. */
  readonly #keys = new Map<string, MasterKey>();
  #current: MasterKey;

  /** `first` is the key that seals until the database says otherwise. */
  constructor(path: string, first: MasterKey, lock?: PassphraseKey) {
    this.path = path;
    this.lock = lock;
    this.inFile = first.name;
    this.#current = first;
    this.#keys.set(first.name, first);
  }

  /** The key that seals, as far as this process knows; who seals asks the database. */
  get current(): MasterKey {
    return this.#current;
  }

  /** All that were found, the current one first. */
  get all(): MasterKey[] {
    return [this.#current, ...[...this.#keys.values()].filter((key) => key !== this.#current)];
  }

  /** The key of this name; its file may have appeared since the last look. */
  find(name: string): MasterKey | undefined {
    const known = this.#keys.get(name);
    // Standard input has no neighbours, and says what it holds once.
    if (known !== undefined || this.path === '-') return known;
    for (const file of keyFilesBeside(this.path)) {
      const key = file.id === name ? keyIn(file, this.lock) : undefined;
      if (key === undefined) continue;
      this.#keys.set(name, key);
      return key;
    }
    return undefined;
  }

  /** Takes up a key from elsewhere. */
  add(key: MasterKey): void {
    if (!this.#keys.has(key.name)) this.#keys.set(key.name, key);
  }

  /** Makes the key of this name the one that seals. Undefined, and nothing changed, where it cannot be found. */
  use(name: string): MasterKey | undefined {
    const key = this.find(name);
    if (key !== undefined) this.#current = key;
    return key;
  }
}

/** Where a rotation puts the next key. */
export function nextKeyPath(path: string): string {
  return `${realPath(path)}.next`;
}

/** Where a key stays that is not the current one any more. */
export function pastKeyPath(path: string, name: string): string {
  return `${realPath(path)}.${name}`;
}

/**
 * The key files that there are: the key file itself first, then those beside it (`.next`, and `.` with the key's name). What
 * cannot be read, or is no key, is left out, except for the key file itself: there it throws OperatorError.
 */
export function keyFilesBeside(path: string): KeyFile[] {
  const others = namesBeside(path).flatMap((other) => {
    try {
      return readKeyFile(other) ?? [];
    } catch {
      // Somebody else's, or gone at this moment: then it is no key of ours.
      return [];
    }
  });
  // Last, because a rotation gives the next key this name: who reads in the other order can miss it under both.
  const own = readKeyFile(path);
  return own === undefined ? others : [own, ...others];
}

/** Paths of files beside the key file that are called as further keys are. */
export function namesBeside(path: string): string[] {
  if (path === '-') return [];
  const real = realPath(path);
  const directory = dirname(real);
  const own = `${basename(real)}.`;
  try {
    return readdirSync(directory)
      .filter((name) => name.startsWith(own) && /^(next|[0-9a-f]{16})$/.test(name.slice(own.length)))
      .map((name) => join(directory, name));
  } catch {
    // No directory, no keys in it.
    return [];
  }
}

/** The file itself, where a symbolic link leads to it: its neighbours are what counts. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // There is no file yet.
    return path;
  }
}
