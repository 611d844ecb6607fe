/** Files are removed without an error if they do not exist, and with a clear one if the disk refuses. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { removeFile } from '../../src/base/durable-file.ts';
import { tempDir } from '../harness/temp-dir.ts';

test('removeFile removes a file or a link, and ignores a missing file', (t) => {
  const dir = tempDir(t);
  writeFileSync(join(dir, 'file'), 'content');
  symlinkSync(join(dir, 'file'), join(dir, 'link'));
  removeFile(join(dir, 'link'));
  assert.equal(existsSync(join(dir, 'file')), true);
  removeFile(join(dir, 'file'));
  assert.equal(existsSync(join(dir, 'file')), false);
  removeFile(join(dir, 'file'));
});

test('a file that cannot be removed is reported with code and path', (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'directory');
  mkdirSync(path);
  assert.throws(
    () => removeFile(path),
    (error: NodeJS.ErrnoException) => /^(EISDIR|EPERM)$/.test(error.code ?? '') && error.path === path,
  );
});
