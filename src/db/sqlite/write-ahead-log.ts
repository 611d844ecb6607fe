/** The write-ahead log beside a database (sqlite.org/wal.html): entering the mode, and moving the log into the file. */
import type BetterSqlite3 from 'better-sqlite3';
import type { World } from '../../base/world.ts';
import { isBusy } from './storage-error.ts';

/**
 * Enters WAL mode, waiting up to `patienceMs` for locks of other processes: if another process enters it at the same
 * moment, SQLite fails immediately, regardless of the timeout. Throws the error of SQLite.
 */
export async function enterWal(
  writing: BetterSqlite3.Database,
  patienceMs: number,
  world: World,
): Promise<void> {
  const giveUpAt = world.elapsed() + patienceMs;
  for (;;) {
    try {
      writing.pragma('journal_mode = wal');
      return;
    } catch (error) {
      if (!isBusy(error) || world.elapsed() >= giveUpAt) throw error;
      await world.sleep(5);
    }
  }
}

/**
 * Moves all of the log into the file and cuts it to nothing. Returns false if a concurrent reader or writer
 * keeps part of it. Throws the error of SQLite if the disk fails.
 */
export function emptyLog(writing: BetterSqlite3.Database): boolean {
  const [truncated] = writing.pragma('wal_checkpoint(truncate)') as { busy: number }[];
  return truncated?.busy === 0;
}
