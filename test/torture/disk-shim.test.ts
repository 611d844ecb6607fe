/** Tests the failing disk of the other chambers: it fails the selected operations, and only while a fault is set. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { needs } from '../harness/processes/missing-program.ts';
import { vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { diskShim } from './disk-shim.ts';

test(
  'a command on a failing disk reports the error, and works again after the fault',
  needs('cc'),
  async (t) => {
    const scratch = tempDir(t);
    const root = join(scratch, 'disk');
    mkdirSync(root);
    const { environment, fail } = diskShim(scratch, root);
    const create = (name: string) => {
      const options = ['--name', name, '--domain', 'a.test', '--data-dir', join(root, 'data')];
      return vault(['certificate', 'create', ...options], { environment });
    };
    assert.equal((await create('first')).code, 0);
    const cases = [
      [{ operation: 'write', error: 'ENOSPC', pattern: '*-wal' }, /the disk with the database is full/],
      [{ operation: 'sync', error: 'EIO', pattern: '*' }, /failed to read or write the database/],
      [{ operation: 'read', error: 'EIO', pattern: '*.db' }, /failed to read or write the database/],
      [
        { operation: 'change', error: 'EROFS', pattern: '*' },
        /cannot (write to|open) the database|read-only/,
      ],
      [
        { operation: 'open', error: 'EMFILE', pattern: '*/vault.db' },
        /too many open files|cannot open the database/,
      ],
    ] as const;
    for (const [fault, sentence] of cases) {
      fail(fault);
      const refused = await create('second');
      assert.deepEqual([refused.code, refused.stdout], [1, ''], JSON.stringify(fault));
      assert.match(refused.stderr, sentence, JSON.stringify(fault));
    }
    fail();
    assert.equal((await create('second')).code, 0);
  },
);
