/** The files of a database are known to the engine alone. */
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { removeDatabase } from '../../../src/db/sqlite/database-files.ts';
import { tempDir } from '../../harness/temp-dir.ts';

test('removeDatabase removes the database, its WAL, shared memory and journal, and no other file', (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'a.db');
  for (const suffix of ['', '-wal', '-shm', '-journal', '-other']) writeFileSync(path + suffix, '');
  removeDatabase(path);
  assert.deepEqual(readdirSync(directory), ['a.db-other']);
});
