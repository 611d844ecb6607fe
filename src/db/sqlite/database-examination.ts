/** Reads a complete database without changing it and reports damage. */
import { statSync } from 'node:fs';
import BetterSqlite3 from 'better-sqlite3';
import { OperatorError } from '../../base/operator-error.ts';
import { refuseEmptyDatabase } from './database-inspection.ts';
import { appliedMigrations, migrations, refuseForeignDatabase } from './migrations.ts';
import { damageIn, storageErrorFrom } from './storage-error.ts';

export type DatabaseFacts = {
  readonly bytes: number;
  /** Of the write-ahead log, which is checkpointed unless long reads prevent it. */
  readonly logBytes: number;
  /** Whether the schema is current; otherwise the database is upgraded first. */
  readonly isCurrent: boolean;
};

/**
 * Takes seconds for a large file. Throws OperatorError or StorageError if it is damaged, not from a vault, or from a
 * newer vault.
 */
export function examineDatabase(path: string): DatabaseFacts {
  let database: BetterSqlite3.Database | undefined;
  try {
    refuseEmptyDatabase(path);
    database = new BetterSqlite3(path, { readonly: true, fileMustExist: true });
    refuseForeignDatabase(database);
    refuseDamaged(
      database,
      (findings) => new OperatorError(`the database is damaged: ${findings}`, { hint }),
    );
    const applied = appliedMigrations(database);
    return {
      bytes: sizeOf(path),
      logBytes: sizeOf(`${path}-wal`),
      isCurrent: Object.keys(migrations).every((name) => applied.includes(name)),
    };
  } catch (error) {
    throw error instanceof OperatorError ? error : storageErrorFrom(error, path);
  } finally {
    database?.close();
  }
}

/** A server checks files up to this size completely when it starts; larger ones would delay it. */
const checkedSize = 64 * 1024 * 1024;

/**
 * Checks a file of up to 64 MiB, without comparing indexes to rows. Throws StorageError, or OperatorError if a page, an
 * index or a table is damaged.
 */
export function checkQuickly(database: BetterSqlite3.Database): void {
  const path = database.name;
  if (sizeOf(path) > checkedSize) return;
  let damage: string | undefined;
  try {
    damage = damageIn(database.prepare('pragma quick_check(3)').pluck().all());
  } catch (error) {
    throw storageErrorFrom(error, path);
  }
  if (damage === undefined) return;
  throw new OperatorError(`the database ${path} is damaged: ${damage}`, {
    hint: 'Nothing was changed. Keep a copy of the file, then restore the latest backup.',
  });
}

const hint = 'Keep a copy of the file, then restore the latest backup.';

/** Reads every page, index and reference; throws the result of `asError` for the first findings. */
export function refuseDamaged(
  database: BetterSqlite3.Database,
  asError: (findings: string) => OperatorError,
): void {
  database.pragma('trusted_schema = off');
  database.pragma('cell_size_check = on');
  const damage = damageIn(database.prepare('pragma integrity_check(3)').pluck().all());
  if (damage !== undefined) throw asError(damage);
  if (database.prepare('pragma foreign_key_check').get() !== undefined) {
    throw asError('rows refer to missing rows');
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
