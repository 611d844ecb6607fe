/**
 * The copy of a database before its schema changes: complete, checked and durable, or the database is not migrated. It
 * allows going back to the older vault.
 */

import { closeSync, openSync, readdirSync, renameSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { removeFile, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError, isNoSpaceError } from '../../base/system-error.ts';
import { removeDatabase } from './database-files.ts';
import { damageIn } from './storage-error.ts';

/** The newest copies to keep: after two upgrades in a day, the original state is still available. */
const keptCopies = 3;

/**
 * Copies the committed state to `vault.db.before-<migration>`, under the write lock of the caller, so that nothing
 * changes meanwhile. A copy from an earlier attempt may be outdated and is replaced. Throws OperatorError if there is
 * no space for it, or it cannot be written. Returns its path.
 */
export async function copyBeforeMigration({ name }: BetterSqlite3.Database, before: string): Promise<string> {
  const copy = `${name}.before-${before}`;
  const draft = `${copy}.draft`;
  // A separate connection: SQLite cannot copy from one that is in a write transaction.
  const source = new BetterSqlite3(name, { readonly: true });
  let isMade = false;
  try {
    closeSync(openSync(draft, 'w', 0o600));
    isMade = true;
    await source.backup(draft);
    refuseDamaged(draft);
    syncPath(draft);
    renameSync(draft, copy);
    syncPath(dirname(copy));
    return copy;
  } catch (error) {
    throw asCopyError(error, copy);
  } finally {
    source.close();
    if (isMade) removeDraft(draft);
  }
}

function removeDraft(draft: string): void {
  try {
    removeDatabase(draft);
  } catch {
    // The next migration removes it; another error is reported.
  }
}

/** Removes the oldest copies after a migration, and drafts of killed attempts. The caller holds the write lock. */
export function pruneCopies({ name }: BetterSqlite3.Database): void {
  const prefix = `${basename(name)}.before-`;
  const beside = readdirSync(dirname(name)).filter((file) => file.startsWith(prefix));
  // Migrations are numbered, so names sort in the order of upgrades.
  const copies = beside.filter((file) => /^\d{4}-[a-z0-9-]+$/.test(file.slice(prefix.length))).sort();
  const drafts = beside.filter((file) => /^\d{4}-[a-z0-9-]+\.(draft|\d+)$/.test(file.slice(prefix.length)));
  for (const file of [...copies.slice(0, -keptCopies), ...drafts]) {
    try {
      removeFile(join(dirname(name), file));
    } catch {
      // A copy that cannot be removed wastes space, but must not prevent the start.
    }
  }
}

/** Also turns the copy into a single plain file, without a log next to it. */
function refuseDamaged(copy: string): void {
  const database = new BetterSqlite3(copy, { fileMustExist: true });
  try {
    database.pragma('journal_mode = delete');
    const damage = damageIn(database.prepare('pragma quick_check(1)').pluck().all());
    if (damage === undefined) return;
    throw new OperatorError(`the database is damaged and was not upgraded: ${damage}`, {
      hint: 'Nothing was changed. Keep a copy of the file, then restore the latest backup.',
    });
  } finally {
    database.close();
  }
}

function asCopyError(error: unknown, copy: string): unknown {
  const { code } = error as { code?: unknown };
  if (error instanceof OperatorError || typeof code !== 'string') return error;
  return new OperatorError(
    isNoSpaceError(error)
      ? `not enough space for the copy of the database before the upgrade (${copy})`
      : `cannot copy the database before the upgrade: ${describeSystemError(error)} (${copy})`,
    {
      hint: 'Free some space there, or make the directory writable for this user. Nothing was changed; the older vault still starts.',
      cause: error,
    },
  );
}
