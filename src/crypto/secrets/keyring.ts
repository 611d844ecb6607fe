/**
 * The master keys that this process can find: in the key file, and in the files next to it that a rotation creates. One
 * of them seals; each opens what it has sealed. An unknown key is searched for again, so that a running server finds
 * the next key by itself.
 */
import { readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { MasterKey } from './master-key.ts';
import { type KeyFile, keyIn, readKeyFile } from './master-key-file.ts';
import type { PassphraseKey } from './passphrase-key.ts';

export class Keyring {
  /** The key file; other keys are next to it. */
  readonly path: string;
  /** Opens key files that are sealed under this passphrase. */
  readonly lock: PassphraseKey | undefined;
  /** The name of the key in the key file when it was read. */
  readonly inFile: string;
  /** By name. A key stays here after its file is deleted, so that data that was already read can still be opened. */
  readonly #keys = new Map<string, MasterKey>();
  #current: MasterKey;

  /** `first` seals until the database names another key. */
  constructor(path: string, first: MasterKey, lock?: PassphraseKey) {
    this.path = path;
    this.lock = lock;
    this.inFile = first.name;
    this.#current = first;
    this.#keys.set(first.name, first);
  }

  /** The key that seals, as far as this process knows; before sealing, ask the database. */
  get current(): MasterKey {
    return this.#current;
  }

  /** All keys that were found, the current one first. */
  get all(): MasterKey[] {
    return [this.#current, ...[...this.#keys.values()].filter((key) => key !== this.#current)];
  }

  /** The key with this name; searches the files again if it is unknown. */
  find(name: string): MasterKey | undefined {
    const known = this.#keys.get(name);
    // Standard input has no neighboring files, and can be read only once.
    if (known !== undefined || this.path === '-') return known;
    for (const file of keyFilesBeside(this.path)) {
      const key = file.id === name ? keyIn(file, this.lock) : undefined;
      if (key === undefined) continue;
      this.#keys.set(name, key);
      return key;
    }
    return undefined;
  }

  /** The names of all keys that can be found now, without opening their files. */
  names(): string[] {
    const beside = this.path === '-' ? [] : keyFilesBeside(this.path).map(({ id }) => id);
    return [...new Set([...this.#keys.keys(), ...beside])];
  }

  /** Adds a key from another source. */
  add(key: MasterKey): void {
    if (!this.#keys.has(key.name)) this.#keys.set(key.name, key);
  }

  /** Makes this key the one that seals. Returns undefined and changes nothing if it cannot be found. */
  use(name: string): MasterKey | undefined {
    const key = this.find(name);
    if (key !== undefined) this.#current = key;
    return key;
  }
}

/** Where a rotation writes the next key. */
export function nextKeyPath(path: string): string {
  return `${realPath(path)}.next`;
}

/** Where a previous key is kept. */
export function pastKeyPath(path: string, name: string): string {
  return `${realPath(path)}.${name}`;
}

/**
 * All key files: the key file itself first, then those next to it (`.next`, and `.` with the name of the key).
 * Unreadable files and other content are skipped, except for the key file itself, for which OperatorError is thrown.
 */
export function keyFilesBeside(path: string): KeyFile[] {
  const others = namesBeside(path).flatMap((other) => {
    try {
      return readKeyFile(other) ?? [];
    } catch {
      // Belongs to another user, or was just deleted: not one of our keys.
      return [];
    }
  });
  // `.next` comes last, because a rotation renames it: reading in the other order could miss the key under both names.
  const own = readKeyFile(path);
  return own === undefined ? others : [own, ...others];
}

/** Files next to the key file whose names are those of further keys. */
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
    // Without a directory there are no keys.
    return [];
  }
}

/** The target of a symbolic link: files next to the target count. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // The file does not exist yet.
    return path;
  }
}
