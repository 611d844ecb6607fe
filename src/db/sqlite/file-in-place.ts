/**
 * Whether an open database is still the file at its path. SQLite goes on in a file that was moved, replaced or removed, and
 * what it commits there is gone for whoever opens the path next; so nothing may be answered from it.
 */

import { type Stats, statSync } from 'node:fs';
import { StorageError } from '../../base/storage-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';

/** How long reads rely on the last look. */
const trustedMs = 100;

export class FileInPlace {
  readonly #path: string;
  readonly #world: World;
  readonly #device: number;
  readonly #inode: number;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** `path` is open, and nobody can have moved it yet. */
  constructor(path: string, world: World) {
    this.#path = path;
    this.#world = world;
    const { dev, ino } = statSync(path);
    this.#device = dev;
    this.#inode = ino;
  }

  /** Throws StorageError where another file or none is there. */
  require(): void {
    const found = lookAt(this.#path);
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

  /** As `require`, for reads: without a look where the last one was a moment ago. */
  requireLately(): void {
    if (!(Math.abs(this.#world.now() - this.#lookedAt) < trustedMs)) this.require();
  }
}

function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new StorageError(`cannot access the database ${path}: ${describeSystemError(error)}`, {
      hint: 'Check the disk and the permissions of the parent directories.',
      cause: error,
    });
  }
}
