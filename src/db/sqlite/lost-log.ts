/**
 * Handles a write-ahead log or shared memory that was removed while the database is open. SQLite does not notice and
 * keeps using the deleted files; the next process to open the database creates new ones, with separate locks.
 */
import { closeSync, existsSync, openSync, realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type BetterSqlite3 from 'better-sqlite3';
import { syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { quoted } from '../../base/paths/shell-word.ts';
import { StorageError } from '../../base/storage-error.ts';
import type { World } from '../../base/world.ts';
import { databaseName, logOf, sharedMemoryOf } from './database-files.ts';
import { heldLocks } from './process-lock.ts';
import { storageErrorFrom } from './storage-error.ts';
import { emptyLog } from './write-ahead-log.ts';

/** The state of the log of an open database; `replaced`: another program has written to a new one. */
export type LogState = 'in place' | 'removed' | 'replaced';

/** The log or the shared memory is missing, but the database is in place. */
export class LostLogError extends StorageError {
  readonly file: string;
  readonly log: LogState;

  constructor(
    file: string,
    log: LogState,
    hint = 'The vault saves what the write-ahead log contains, and stops.',
  ) {
    super(`${file} was removed or replaced while the database was open`, { hint });
    this.name = 'LostLogError';
    this.file = file;
    this.log = log;
  }
}

/** How often a checkpoint waits for a reader of this process, and how long each time. */
const maxTries = 100;
const pauseMs = 20;

/**
 * Saves what was committed to a lost log, through the descriptors that `database` still has: to the database file, or
 * to a copy of it if another program has written meanwhile. Returns the error for all later operations, which says
 * where the data is. Throws StorageError if saving fails.
 */
export async function saveLostLog(
  database: BetterSqlite3.Database,
  { file, log }: LostLogError,
  world: Pick<World, 'now' | 'sleep'>,
): Promise<LostLogError> {
  const { name } = database;
  const never = `Never remove ${basename(logOf(name))} and ${basename(sharedMemoryOf(name))} while a vault process runs.`;
  const again = `Start the vault again. ${never}`;
  try {
    switch (log) {
      case 'in place':
        return new LostLogError(file, log, `Nothing is lost: the write-ahead log is complete. ${again}`);
      case 'removed':
        await foldAll(database, world);
        return new LostLogError(
          file,
          log,
          `Nothing is lost: the write-ahead log was saved into ${name}. ${again}`,
        );
      case 'replaced': {
        const moment = world.now();
        const copy = saveCopy(database, `${name}.saved-${moment}`);
        const old = quoted(`${name}.replaced-${moment}`);
        const [from, beside, shared, saved] = [name, logOf(name), sharedMemoryOf(name), copy].map(quoted);
        const moves = `mkdir ${old} && mv ${from} ${beside} ${shared} ${old}/ && mv ${saved} ${from}`;
        return new LostLogError(
          file,
          log,
          `Another program has changed the database. The state of this vault was saved as ${copy}.\n` +
            `  To continue with it, stop all programs that use the database.\n  Fix: ${moves}\n  ${never}`,
        );
      }
    }
  } catch (error) {
    throw storageErrorFrom(error, name);
  }
}

async function foldAll(database: BetterSqlite3.Database, world: Pick<World, 'sleep'>): Promise<void> {
  for (let tries = 0; !emptyLog(database); tries += 1) {
    if (tries === maxTries) {
      throw new StorageError(
        `cannot save the write-ahead log of ${database.name} while the database is being read`,
        {
          hint: 'The next request retries this. Do not kill the vault.',
        },
      );
    }
    await world.sleep(pauseMs);
  }
}

function saveCopy(database: BetterSqlite3.Database, copy: string): string {
  closeSync(openSync(copy, 'wx', 0o600));
  database.prepare('vacuum into ?').run(copy);
  syncPath(copy);
  syncPath(dirname(copy));
  return copy;
}

/**
 * Throws OperatorError if the log or the shared memory of the database at `path` is missing although a server has it
 * open: opening it would create new ones. A server that stops releases its lock before SQLite removes both.
 */
export function refuseLostLog(path: string): void {
  if (basename(path) !== databaseName || !existsSync(path)) return;
  const real = realpathSync(path);
  const missing = [logOf(real), sharedMemoryOf(real)].find((file) => !existsSync(file));
  if (missing === undefined || heldLocks(dirname(path)).length === 0) return;
  // A server that stops releases its lock before SQLite removes both.
  throw new OperatorError(`${missing} is missing, while a vault server has the database open`, {
    hint: 'The server notices within a minute, saves its changes and stops. Then run the command again. Nothing was changed.',
  });
}
