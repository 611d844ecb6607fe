/** SQLite's errors about its environment, as messages for operators. */
import { StorageError } from '../../base/storage-error.ts';
import { movedHint, movedSentence } from '../schema/moved-vault.ts';

const sentences: readonly { codes: RegExp; message: string; hint: string }[] = [
  {
    // The only triggers that raise errors.
    codes: /^SQLITE_CONSTRAINT_TRIGGER$/,
    message: movedSentence,
    hint: movedHint,
  },
  {
    codes: /^SQLITE_(BUSY|LOCKED)/,
    message: 'the database is locked by another process',
    hint: 'Retry in a moment. If the error persists, find the program that holds a transaction on the database.',
  },
  {
    codes: /^SQLITE_FULL$/,
    message: 'the disk with the database is full',
    hint: 'Free some space. Nothing was changed or lost.',
  },
  {
    codes: /^SQLITE_READONLY_DBMOVED$/,
    message: 'the database was replaced while it was open',
    hint: 'A backup was restored at the same time. Start again.',
  },
  {
    codes: /^SQLITE_(READONLY|PERM|AUTH)/,
    message: 'cannot write to the database',
    hint: 'Run the command as the user that owns the data directory, and check that the disk is not mounted read-only.',
  },
  {
    codes: /^SQLITE_CANTOPEN/,
    message: 'cannot open the database',
    hint: 'Run the command as the user that owns the data directory.',
  },
  {
    codes: /^SQLITE_IOERR/,
    message: 'failed to read or write the database',
    hint: 'Check the disk (free space, quota, kernel log).',
  },
  {
    codes: /^SQLITE_(CORRUPT|NOTADB|FORMAT)/,
    message: 'the database is damaged, or the file is not a database',
    hint: 'Nothing was changed. Keep a copy of the file, then restore the latest backup.',
  },
];

/** Converts SQLite errors about the environment to StorageError; others are bugs and returned unchanged. */
export function storageErrorFrom(error: unknown, path: string): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== 'string') return error;
  const sentence = sentences.find(({ codes }) => codes.test(code));
  if (sentence === undefined) return error;
  // Other triggers have other messages.
  if (sentence.message === movedSentence && (error as Error).message !== movedSentence) return error;
  return new StorageError(`${sentence.message} (${path}, ${code})`, { hint: sentence.hint, cause: error });
}

/** Whether SQLite failed because another process holds the lock. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_BUSY/.test(String((error as { code?: unknown } | null)?.code));
}

const unread = /error code=(\d+)/g;
const ioError = 10;

/**
 * The findings of SQLite's integrity check on one line; undefined if there are none. Throws an I/O error if pages could
 * not be read: that is a failing disk, not damage that requires a restore.
 */
export function damageIn(findings: readonly unknown[]): string | undefined {
  if (findings.length === 1 && findings[0] === 'ok') return undefined;
  const lines = findings.flatMap((finding) => String(finding).split('\n'));
  const reported = lines.filter((line) => line !== '' && !line.startsWith('*** in database'));
  const codes = reported.map((line) => Number([...line.matchAll(unread)][0]?.[1] ?? 0) % 256);
  // Pages that could not be read cause all other findings.
  if (codes.includes(ioError)) {
    const cause = reported.join('; ');
    throw Object.assign(new Error('disk I/O error', { cause }), { code: 'SQLITE_IOERR' });
  }
  return reported.join('; ');
}
