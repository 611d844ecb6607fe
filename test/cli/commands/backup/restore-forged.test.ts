/**
 * `vault restore` of a backup that someone without the key forged: nothing of it is printed, although its checksum
 * fits.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import {
  type Manifest,
  pageBody,
  pageEnd,
  pageSize,
  readPage,
} from '../../../../src/domain/backup/backup-manifest.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';

const forgeries: Readonly<Record<string, (manifest: Manifest) => Partial<Manifest>>> = {
  'escape sequences in its version': () => ({ vault_version: '9\u001b]0;owned\u0007' }),
  'escape sequences in its schema': ({ schema }) => ({
    schema: [...schema, '\u001b[2J\u001b[Howned', '\u009b2J'],
  }),
  'a sentence in its schema': ({ schema }) => ({ schema: [...schema, 'owned\nThe backup is intact.'] }),
  'a schema that only a newer vault has': ({ schema }) => ({
    vault_version: '9.9.9-owned',
    schema: [...schema, '9999-owned'],
  }),
};

test('a forged backup is rejected without printing the forged text', async (t) => {
  const { data, done, refused } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const file = join(dirname(data), 'x.backup');
  await done('backup', file);
  const bytes = readFileSync(file);
  const database = bytes.subarray(0, -pageSize);
  const page = readPage(bytes.subarray(-pageSize));
  assert.ok(typeof page === 'object');
  for (const [name, forge] of Object.entries(forgeries)) {
    const body = Buffer.concat([database, pageBody({ ...page.manifest, ...forge(page.manifest) })]);
    const digest = createHash('sha256').update(body).digest();
    writeFileSync(file, Buffer.concat([body, pageEnd(digest, page.mac)]));
    for (const option of ['--check', '--replace']) {
      const expected =
        /^vault: [^\n]*x\.backup (is damaged|was modified): (?![\s\S]*owned)[^\n]+\n {2}[^\n]+\n$/;
      await refused(['restore', file, option, '--yes'], expected, 1).catch((error: Error) => {
        throw new Error(`${name}, ${option}`, { cause: error });
      });
    }
  }
});
