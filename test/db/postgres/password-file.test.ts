/** Password files as libpq reads them: the first line that fits, escapes, and no file that other users can read. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseConnectionUrl } from '../../../src/db/postgres/connection-url.ts';
import { passwordFor } from '../../../src/db/postgres/password-file.ts';
import { tempDir } from '../../harness/temp-dir.ts';

function file(t: TestContext, lines: readonly string[], mode = 0o600): string {
  const path = join(tempDir(t), 'pgpass');
  writeFileSync(path, lines.join('\n'), { mode });
  chmodSync(path, mode);
  return path;
}

/** The password for the first host of the URL. */
function find(passFile: string, text: string): Promise<string | undefined> {
  const url = parseConnectionUrl(text, { environment: { PGPASSFILE: passFile } });
  const [host] = url.hosts;
  assert.ok(host);
  return passwordFor(url, host);
}

test('the first line that fits host, port, database and user has the password', async (t) => {
  const path = file(t, [
    '# comment:5432:d:u:no',
    'other:5432:d:u:other',
    'short:line',
    'db:5433:d:u:by-port',
    'db:*:e:u:by-database',
    'db:5432:d:u:exact:with:colons\\\\',
    '*:*:*:*:any',
  ]);
  assert.equal(await find(path, 'postgres://u@db/d'), 'exact:with:colons\\');
  assert.equal(await find(path, 'postgres://u@db:5433/d'), 'by-port');
  assert.equal(await find(path, 'postgres://u@db:1/e'), 'by-database');
  assert.equal(await find(path, 'postgres://v@db/d'), 'any');
  assert.equal(await find(path, 'postgres://u:own@db/d'), 'own');
});

test('escaped colons match IPv6 hosts, and a socket matches localhost or its directory', async (t) => {
  const path = file(t, ['\\:\\:1:*:*:*:v6', '/run/pg:*:d:*:folder', 'localhost:*:*:*:local\r', '']);
  assert.equal(await find(path, 'postgres://u@[::1]/d'), 'v6');
  assert.equal(await find(path, 'postgres://u@%2Frun%2Fpg/d'), 'folder');
  assert.equal(await find(path, 'postgres://u@%2Frun%2Fpg/e'), 'local');
  assert.equal(await find(path, 'postgres://u@db/d'), undefined);
});

test('a missing file gives no password; a group-readable or unreadable file is rejected', async (t) => {
  assert.equal(await find(join(tempDir(t), 'missing'), 'postgres://u@db/d'), undefined);
  const open = file(t, ['*:*:*:*:p'], 0o640);
  await assert.rejects(find(open, 'postgres://u@db/d'), {
    name: 'OperatorError',
    hint: `Fix: chmod 600 ${open}`,
  });
  const folder = join(tempDir(t), 'folder');
  mkdirSync(folder, { mode: 0o700 });
  await assert.rejects(find(folder, 'postgres://u@db/d'), { name: 'OperatorError' });
});
