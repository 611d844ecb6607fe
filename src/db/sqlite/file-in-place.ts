/**
 * Checks whether the files of an open database are still at its path. SQLite keeps using files that were moved,
 * replaced or deleted, but the next process that opens the path does not see its commits, so reads are rejected too.
 * All three files are checked: two processes with different shared memory do not see each other's locks, and both
 * write.
 */

import { realpathSync, type Stats, statSync } from 'node:fs';
import { OperatorError } from '../../base/operator-error.ts';
import { StorageError } from '../../base/storage-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import { logOf, sharedMemoryOf } from './database-files.ts';
import { type LogState, LostLogError } from './lost-log.ts';

/** How long reads rely on the last check. */
const trustedMs = 100;

type Identity = Pick<Stats, 'dev' | 'ino'>;

export class FileInPlace {
  readonly #path: string;
  readonly #world: Pick<World, 'elapsed'>;
  readonly #database: Identity;
  readonly #companions: readonly (Identity & { readonly file: string })[];
  #checkedAt = Number.NEGATIVE_INFINITY;

  /** Call it while `path` is open, after a read of its log, and before its files can be moved. */
  constructor(path: string, world: Pick<World, 'elapsed'>) {
    this.#path = path;
    this.#world = world;
    this.#database = statSync(path);
    const real = realpathSync(path);
    this.#companions = [logOf(real), sharedMemoryOf(real)].map((file) => {
      const { dev, ino } = statSync(file);
      return { file, dev, ino };
    });
  }

  /** Throws StorageError if the database is missing or replaced, and LostLogError if one of its other files is. */
  require(): void {
    this.#checkedAt = Number.NEGATIVE_INFINITY;
    const found = statOf(this.#path);
    if (!isSame(found, this.#database)) {
      const what = found === undefined ? 'removed or moved' : 'replaced';
      throw new StorageError(`the database was ${what} while it was open (${this.#path})`, {
        hint: 'Move the original file back to continue, or stop the vault and start it with the new file.',
      });
    }
    for (const companion of this.#companions) {
      const now = statOf(companion.file);
      if (!isSame(now, companion)) throw new LostLogError(companion.file, this.#logState());
    }
    this.#checkedAt = this.#world.elapsed();
  }

  /** Like `require`, for reads: skips the check if the last one is recent. */
  requireLately(): void {
    if (this.#world.elapsed() - this.#checkedAt >= trustedMs) this.require();
  }

  #logState(): LogState {
    const [log] = this.#companions;
    const now = log && statOf(log.file);
    if (isSame(now, log)) return 'in place';
    return now !== undefined && now.size > 0 ? 'replaced' : 'removed';
  }
}

function isSame(one: Identity | undefined, other: Identity | undefined): boolean {
  return one?.ino === other?.ino && one?.dev === other?.dev;
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

/** The error if the file was replaced while the vault opened it. */
export function replacedMeanwhile(path: string): OperatorError {
  return new OperatorError(`the database was replaced while the vault opened it (${path})`, {
    hint: 'A backup was restored at the same time. Start again.',
  });
}
