/** Storage errors: what SQLite reports about its surroundings becomes a sentence; a bug stays a bug. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { StorageError } from '../../../src/base/storage-error.ts';
import { damageIn, isBusy, storageErrorFrom } from '../../../src/db/sqlite/storage-error.ts';

const sentences: Record<string, RegExp> = {
  SQLITE_BUSY: /locked by another process/,
  SQLITE_BUSY_SNAPSHOT: /locked by another process/,
  SQLITE_BUSY_RECOVERY: /locked by another process/,
  SQLITE_LOCKED: /locked by another process/,
  SQLITE_FULL: /disk .* is full/,
  SQLITE_READONLY: /cannot write to the database/,
  SQLITE_READONLY_DIRECTORY: /cannot write to the database/,
  SQLITE_PERM: /cannot write to the database/,
  SQLITE_CANTOPEN: /cannot open the database/,
  SQLITE_IOERR_WRITE: /failed to read or write the database/,
  SQLITE_IOERR_FSYNC: /failed to read or write the database/,
  SQLITE_CORRUPT: /is damaged/,
  SQLITE_CORRUPT_INDEX: /is damaged/,
  SQLITE_NOTADB: /the file is not a database/,
};

for (const [code, sentence] of Object.entries(sentences)) {
  test(`${code} is reported with the path, the code, a hint and the cause`, () => {
    const cause = Object.assign(new Error('raw'), { code });
    const error = storageErrorFrom(cause, '/data/vault.db');
    assert(error instanceof StorageError && error instanceof OperatorError);
    assert.match(error.message, sentence);
    assert(error.message.endsWith(`(/data/vault.db, ${code})`));
    assert(error.hint);
    assert.equal(error.cause, cause);
  });
}

const bugs: readonly unknown[] = [
  Object.assign(new Error('UNIQUE'), { code: 'SQLITE_CONSTRAINT_UNIQUE' }),
  Object.assign(new Error('syntax'), { code: 'SQLITE_ERROR' }),
  Object.assign(new Error('code is no text'), { code: 5 }),
  new TypeError('x is not a function'),
  new StorageError('already told'),
  null,
  undefined,
  'text',
];

for (const bug of bugs) {
  test(`storageErrorFrom returns ${String(bug)} unchanged`, () => {
    assert.equal(storageErrorFrom(bug, '/data/vault.db'), bug);
  });
}

test('isBusy is true only for SQLITE_BUSY and SQLITE_BUSY_SNAPSHOT', () => {
  const busy = ['SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_FULL', 'SQLITE_LOCKED', undefined];
  assert.deepEqual(
    busy.map((code) => isBusy({ code })),
    [true, true, false, false, false],
  );
  assert.equal(isBusy(null), false);
});

test('unreadable pages are reported as a read error, not as damage', () => {
  const lines = '*** in database main ***\nTree 57 page 57: unable to get the page. error code=8458';
  assert.throws(() => damageIn([lines]), { code: 'SQLITE_IOERR', message: 'disk I/O error' });
  assert.equal(damageIn(['ok']), undefined);
  const follows = `${lines}\nwrong # of entries in index x`;
  assert.throws(() => damageIn([follows]), { code: 'SQLITE_IOERR' });
  assert.equal(damageIn(['row 1 missing from index x', 'row 2']), 'row 1 missing from index x; row 2');
  const corrupt = 'Tree 5 page 6: unable to get the page. error code=11';
  assert.equal(damageIn([corrupt]), corrupt);
});
