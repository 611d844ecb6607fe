/** Executes statements of one open database; each text is prepared once. */
import type BetterSqlite3 from 'better-sqlite3';
import { storageErrorFrom } from './storage-error.ts';

/** A value of a statement. */
export type Value = string | number | bigint | null | Uint8Array;

/** What a statement returned, or how many rows it changed. */
export type StatementResult = {
  readonly rows: readonly unknown[];
  readonly changes?: number;
  readonly lastRowId?: number | bigint;
};

const maxCachedStatements = 500;

export class SqliteStatements {
  readonly #database: BetterSqlite3.Database;
  readonly #prepared = new Map<string, BetterSqlite3.Statement>();

  constructor(database: BetterSqlite3.Database) {
    this.#database = database;
  }

  /** Executes one statement. Throws StorageError, or the error of SQLite if it is a bug. */
  execute(sql: string, values: readonly unknown[]): StatementResult {
    try {
      const statement = this.#prepare(sql);
      if (statement.reader) return { rows: statement.all(...values) };
      const { changes, lastInsertRowid } = statement.run(...values);
      return { rows: [], changes, lastRowId: lastInsertRowid };
    } catch (error) {
      throw storageErrorFrom(error, this.#database.name);
    }
  }

  #prepare(sql: string): BetterSqlite3.Statement {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    if (this.#prepared.size >= maxCachedStatements) this.#prepared.clear();
    const statement = this.#database.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}
