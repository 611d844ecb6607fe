/** The write-ahead log beside a database (sqlite.org/wal.html): how it begins, and how it is moved into the file. */
import type BetterSqlite3 from 'better-sqlite3';
import type { World } from '../../base/world.ts';
import { isBusy } from '../storage-error.ts';

/**
 * Has the database keep a log, waiting up to `patienceMs` for locks of others: SQLite does not wait for another process that
 * enters the mode at the same moment, whatever the timeout is. Throws the error of SQLite.
 */
export async function enterWal(
  writing: BetterSqlite3.Database,
  patienceMs: number,
  world: World,
): Promise<void> {
  const giveUpAt = world.now() + patienceMs;
  for (;;) {
    try {
      writing.pragma('journal_mode = wal');
      return;
    } catch (error) {
      if (!isBusy(error) || world.now() >= giveUpAt) throw error;
      await world.sleep(5);
    }
  }
}

/**
 * Moves all of the log into the file and cuts it to nothing. False where somebody who reads or writes just now keeps some of
 * it. Throws the error of SQLite where the disk fails.
 */
export function emptyLog(writing: BetterSqlite3.Database): boolean {
  const [truncated] = writing.pragma('wal_checkpoint(truncate)') as { busy: number }[];
  return truncated?.busy === 0;
}
