/** The name under which ps, top and pgrep find the vault. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tempDir } from '../../harness/temp-dir.ts';
import { serve } from '../../harness/vault-process.ts';
import { childrenOf } from '../../harness/workers-vault.ts';

const linux = existsSync('/proc/self/comm') ? {} : { skip: '/proc/self/comm exists on Linux only' };

test('the server and its workers are called vault, and keep their arguments', linux, async (t) => {
  const data = join(tempDir(t), 'data');
  const server = await serve(t, data, { args: ['--workers', '2'] });
  const workers = childrenOf(server.pid);
  assert.equal(workers.length, 2);
  for (const pid of [server.pid, ...workers]) {
    assert.equal(readFileSync(`/proc/${pid}/comm`, 'utf8'), 'vault\n');
    assert.ok(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes('serve'));
  }
  assert.ok(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8').includes(data));
});
