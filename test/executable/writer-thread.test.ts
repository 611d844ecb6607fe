/**
 * The thread of `vault serve` that writes. It must use the same copy of SQLite as the event loop: when one of two
 * copies closes a file, the system drops the locks of the other.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fromExecutable, serve } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const onLinux =
  process.platform === 'linux' ? {} : { skip: 'only Linux lists the threads and libraries of a process' };

test('serve has one writer thread and loads one copy of SQLite', onLinux, async (t) => {
  const { pid } = await serve(t, join(tempDir(t), 'data'), { program: fromExecutable });
  const tasks = `/proc/${pid}/task`;
  const names = readdirSync(tasks).map((id) => readFileSync(join(tasks, id, 'comm'), 'utf8').trim());
  assert.equal(names.filter((name) => name === 'writer').length, 1, `threads ${names.join(', ')}`);
  // Address, rights, offset, device, inode, path.
  const mapped = readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .filter((line) => line.includes('sqlite.node'))
    .map((line) => line.split(/ +/).slice(3, 5).join(' '));
  assert.equal(new Set(mapped).size, 1, `libraries ${[...new Set(mapped)].join(', ')}`);
});
