/** The version of the embedded SQLite. */
import BetterSqlite3 from 'better-sqlite3';

/** Such as `3.50.4`. */
export function sqliteVersion(): string {
  const memory = new BetterSqlite3(':memory:');
  try {
    return memory.prepare('select sqlite_version()').pluck().get() as string;
  } finally {
    memory.close();
  }
}
