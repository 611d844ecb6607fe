/** The files of a database are known to the engine alone. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { removeDatabase } from '../../../src/db/sqlite/database-files.ts';
import { tempDir } from '../../harness/temp-dir.ts';

test('removeDatabase removes the database and its WAL', (t) => {
  const path = join(tempDir(t), 'a.db');
  for (const suffix of ['', '-wal']) writeFileSync(path + suffix, '');
  removeDatabase(path);
  for (const suffix of ['', '-wal']) assert.equal(existsSync(path + suffix), false);
});
