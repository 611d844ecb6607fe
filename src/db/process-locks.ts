/**
 * The locks in a data directory that say which processes still run. Other folders reach them through this class alone.
 */
import {
  abandonedLocks,
  heldLocks,
  type ProcessLock,
  removeLocks,
  takeProcessLock,
} from './sqlite/process-lock.ts';

export class ProcessLocks {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Takes the lock of this new name. Throws an error of the file system or of SQLite if that fails. */
  take(name: string): ProcessLock {
    return takeProcessLock(this.#directory, name);
  }

  /** The locks that processes hold, those of this process included. */
  held(): string[] {
    return heldLocks(this.#directory);
  }

  /** The locks that no process holds. One that was just created may be among them: its process is about to take it. */
  abandoned(): string[] {
    return abandonedLocks(this.#directory);
  }

  /** Removes abandoned locks, if the file system allows it. Nothing is known about their processes afterwards. */
  remove(names: readonly string[]): void {
    removeLocks(this.#directory, names);
  }
}
