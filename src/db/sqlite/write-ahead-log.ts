/** The write-ahead log (WAL) of a database (sqlite.org/wal.html): entering WAL mode and checkpointing. */
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
 * Checkpoints the whole log and truncates it. Returns false if a concurrent reader or writer still needs part of it.
 * Throws the error of SQLite if the disk fails.
 */
export function emptyLog(writing: BetterSqlite3.Database): boolean {
  const [truncated] = writing.pragma('wal_checkpoint(truncate)') as { busy: number }[];
  return truncated?.busy === 0;
}
