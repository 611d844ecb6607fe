/** A full disk is known by each of its names, and nothing else is taken for one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNoSpaceError } from '../../src/base/full-disk.ts';

const coded = (code: unknown) => Object.assign(new Error('any'), { code });

test('space and quota that are used up are known by the names of Node and SQLite', () => {
  const full = ['ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL', 'Unknown system error -122'];
  assert.deepEqual(
    full.filter((code) => !isNoSpaceError(coded(code))),
    [],
  );
});

test('no other error is taken for a full disk', () => {
  const others = ['EIO', 'SQLITE_IOERR_WRITE', 'Unknown system error -1', 'ENOSPC2', 5, undefined].map(coded);
  assert.deepEqual(
    [...others, undefined, null, 'ENOSPC'].filter((error) => isNoSpaceError(error)),
    [],
  );
});
