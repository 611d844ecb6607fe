/**
 * What a crash of the vault leaves behind: the kernel's dump of it, searched for the keys that it had just handed out.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fromExecutable, serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const pattern = '/proc/sys/kernel/core_pattern';

/** Where the kernel writes core dumps: the test can read them if this is a name without a directory. */
function dumpsAreHere(): { skip?: string } {
  if (!existsSync(pattern)) return { skip: 'this system has no /proc/sys/kernel/core_pattern' };
  const place = readFileSync(pattern, 'utf8').trim();
  return /^[^|/]+$/.test(place) ? {} : { skip: `the dumps of this machine go to ${place}` };
}

/**
 * ELF64 (elf(5)): the dump without its notes, which hold the registers of each thread and so the bytes that were copied
 * last.
 */
function withoutRegisters(dump: Buffer): Buffer {
  assert.equal(dump.subarray(1, 4).toString(), 'ELF');
  const [offset, size, count] = [
    Number(dump.readBigUInt64LE(32)),
    dump.readUInt16LE(54),
    dump.readUInt16LE(56),
  ];
  const rest = Buffer.from(dump);
  let notes = 0;
  for (let at = offset; at < offset + size * count; at += size) {
    const isNote = dump.readUInt32LE(at) === 4;
    if (!isNote) continue;
    const start = Number(dump.readBigUInt64LE(at + 8));
    rest.fill(0, start, start + Number(dump.readBigUInt64LE(at + 32)));
    notes += 1;
  }
  assert.equal(notes, 1);
  return rest;
}

const isLinux = process.platform === 'linux' ? {} : { skip: 'only Linux lets a process choose' };

test(
  'a core dump after a crash contains no keys, even with ulimit -c unlimited',
  dumpsAreHere(),
  async (t) => {
    for (const signal of ['SIGSEGV', 'SIGABRT'] as const) {
      const folder = tempDir(t);
      const data = join(folder, 'data');
      const args = ['--name=web', '--data-dir', data];
      assert.equal((await vault(['certificate', 'create', '--domain=a.test', ...args])).code, 0);
      const key = await vault(['api-key', 'create', '--scope=private_keys:read', '--certificate=*', ...args]);
      // The shell asks for dumps of any size; they go where the process is.
      const program = ['/bin/sh', '-c', 'ulimit -c unlimited; exec "$0" "$@"', fromExecutable[0]];
      const server = await serve(t, data, { program, cwd: folder });
      const headers = { Authorization: `Bearer ${key.stdout.trim()}` };
      const url = `${server.url}/api/v1/certificates/web/private.key`;
      const pem = await (await fetch(url, { headers })).text();
      assert.match(pem, /PRIVATE KEY/);
      assert.deepEqual(await server.end(signal), { code: null, signal });
      const [dump, ...others] = readdirSync(folder).filter((name) => name !== 'data');
      assert(dump !== undefined && others.length === 0, `the dump among ${readdirSync(folder)}`);
      const path = join(folder, dump);
      assert(statSync(path).size < 1024 * 1024, `${statSync(path).size} bytes of dump`);
      const content = withoutRegisters(readFileSync(path));
      const secrets = [...pem.split('\n').slice(1, -2), key.stdout.split('.')[1] ?? '', 'PRIVATE KEY'];
      for (const secret of secrets) assert(!content.includes(secret.trim()), 'a secret in the dump');
      assert(!content.includes(readFileSync(join(data, 'master.key'))), 'the master key in the dump');
    }
  },
);

test('a server has a coredump_filter of 0 before it has its master key', isLinux, async (t) => {
  const folder = tempDir(t);
  const [program, seen] = [join(folder, 'print key'), join(folder, 'seen')];
  // The filter of the vault: the program that prints the key inherits it.
  const body = `cat /proc/self/coredump_filter >'${seen}' && echo ${'3f'.repeat(16)}${'a7'.repeat(16)}`;
  writeFileSync(program, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  const server = await serve(t, join(folder, 'data'), { args: ['--master-key-command', program] });
  for (const path of [seen, `/proc/${server.pid}/coredump_filter`])
    assert.match(readFileSync(path, 'utf8'), /^0+\n$/, path);
});
