/**
 * Checks whether an open database is still the file at its path. SQLite continues in a file that was moved, replaced or
 * deleted, and what it commits there is lost to the next process that opens the path; so nothing may be read from it
 * either.
 */

import { type Stats, statSync } from 'node:fs';
import { StorageError } from '../../base/storage-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';

/** How long reads rely on the last check. */
const trustedMs = 100;

export class FileInPlace {
  readonly #path: string;
  readonly #world: World;
  readonly #device: number;
  readonly #inode: number;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** Call while `path` is open and cannot have been moved yet. */
  constructor(path: string, world: World) {
    this.#path = path;
    this.#world = world;
    const { dev, ino } = statSync(path);
    this.#device = dev;
    this.#inode = ino;
  }

  /** Throws StorageError if the file is missing or another one. */
  require(): void {
    const found = statOf(this.#path);
    if (found?.ino === this.#inode && found.dev === this.#device) {
      this.#lookedAt = this.#world.now();
      return;
    }
    this.#lookedAt = Number.NEGATIVE_INFINITY;
    const what = found === undefined ? 'removed or moved' : 'replaced';
    throw new StorageError(`the database was ${what} while it was open (${this.#path})`, {
      hint: 'Move the original file back to continue, or stop the vault and start it with the new file.',
    });
  }

  /** Like `require`, for reads: skips the check if the last one was a moment ago. */
  requireLately(): void {
    if (!(Math.abs(this.#world.now() - this.#lookedAt) < trustedMs)) this.require();
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new StorageError(`cannot access the database ${path}: ${describeSystemError(error)}`, {
      hint: 'Check the disk and the permissions of the parent directories.',
      cause: error,
    });
  }
}
