/** `--master-key-command`: every command gets the key from a program, and each way in which that fails is said. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { OperatorError } from '../../../src/base/operator-error.ts';
import { masterKeyFrom } from '../../../src/cli/runtime/master-key-command.ts';
import { hookScript } from '../../harness/dns/hook-script.ts';
import { commandLine } from '../../harness/processes/command-line.ts';
import { serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

const key = Buffer.from('3f'.repeat(16) + 'a7'.repeat(16), 'hex');

/** A vault whose key is printed by a script, which counts its runs; `print` changes what it does. */
function withCommand(t: TestContext) {
  const dir = dirname(commandLine(t).data);
  const program = join(dir, 'print key');
  const print = (body: string) => {
    writeFileSync(program, `#!/bin/sh\n${body}\n`);
    chmodSync(program, 0o755);
  };
  print(`echo ${key.toString('base64')}`);
  const line = commandLine(t, { environment: { VAULT_MASTER_KEY_COMMAND: program } });
  return { ...line, dir, program, print, command: ['--master-key-command', program] };
}

test('a vault is created, served, backed up, restored and checked with a key from a command and no key file', async (t) => {
  const { data, dir, program, done, holds, json } = withCommand(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const environment = { VAULT_MASTER_KEY_COMMAND: program };
  const args = ['--backup-dir', join(dir, 'backups'), '--backup-every', '5m'];
  mkdirSync(join(dir, 'backups'));
  const server = await serve(t, data, { environment, args });
  assert.equal((await fetch(`${server.url}/api/v1/health`)).status, 200);
  await server.end();
  assert.match(server.log(), /stopped/);
  const backup = join(dir, 'x.backup');
  await done('backup', backup);
  assert.match((await done('restore', backup, '--check')).stderr, /the one printed by .*print key/);
  await done('restore', backup, '--replace');
  assert.equal((await json<unknown[]>('certificate', 'list')).length, 1);
  const { source, key_file, keys } = await json<{
    source: string;
    key_file: null;
    keys: { state: string }[];
  }>(...['master-key', 'status']);
  assert.deepEqual([source, key_file, keys.map(({ state }) => state)], ['command', null, ['current']]);
  assert.match((await done('master-key', 'status')).stdout, /^Key +printed by .*print key\n/);
  const { stdout } = await vault(['doctor', '--offline', '--data-dir', data], { environment });
  assert.match(stdout, /^ok +master-key /m);
  writeFileSync(join(data, 'master.key'), key, { mode: 0o600 });
  const left = await vault(['doctor', '--offline', '--data-dir', data], { environment });
  assert.match(left.stdout, /^WARNING +master-key +.*master\.key still exists, although a command provides/m);
  rmSync(join(data, 'master.key'));
  assert.deepEqual(
    readdirSync(data).filter((name) => name.includes('key')),
    [],
  );
  for (const form of [key, key.toString('base64'), key.toString('hex')]) assert(!holds(form));
});

const forms: Readonly<Record<string, string>> = {
  'as bytes': `printf '${[...key].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')}'`,
  'as hexadecimal digits': `echo ${key.toString('hex').toUpperCase()}`,
  'as base64': `echo ' ${key.toString('base64')} '`,
  'as base64 for URLs': `printf %s ${key.toString('base64url')}`,
};

test('the master key command may have arguments and print bytes, hexadecimal, base64 or base64url', async (t) => {
  const { done, print, program, data } = withCommand(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  for (const body of Object.values(forms)) {
    print(body);
    await done('certificate', 'list');
  }
  print(`[ "$1" = '$HOME; "x"' ] && [ $# = 1 ] && echo ${key.toString('hex')}`);
  const list = ['certificate', 'list', '--data-dir', data];
  const words = JSON.stringify([program, '$HOME; "x"']);
  assert.equal((await vault([...list, '--master-key-command', words])).code, 0);
  writeFileSync(join(data, 'vault.yaml'), `master_key_command: ${words}\n`);
  assert.equal((await vault(list)).code, 0, 'a list in vault.yaml');
});

test('a master key command that fails is reported with its stderr and never with its stdout', async (t) => {
  const { done, print, program, dir, run, refused } = withCommand(t);
  const list = ['certificate', 'list'];
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const failed = async (body: string, words: RegExp) => {
    print(body);
    const { code, stderr, stdout } = await run(...list);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, words);
    assert(!stderr.includes('s3cret'), stderr);
  };
  await failed(
    `echo s3cret-as-it-is; printf '\\033[31mno token: s3cret-as-it-is\\033[0m\\n' >&2; exit 3`,
    /^vault: the master key command failed: .*print key failed with exit code 3: \[31mno token: \[secret\] \[0m\n {2}Run it by hand/,
  );
  await failed('exit 0', /printed nothing instead of a master key\n {2}It must print 32 bytes/);
  await failed('echo s3cret', /printed 7 bytes instead of a master key/);
  await failed(`printf ${'5a'.repeat(16)}`, /printed 32 bytes instead of a master key/);
  await failed('while :; do echo s3cret-without-end; done', /printed more than 1024 bytes/);
  await failed('kill -9 $$', /was killed by SIGKILL/);
  await failed(
    `head -c 32 /dev/zero`,
    /^vault: the key from .*print key is not the master key of the vault in .*\n {2}The command must print/,
  );
  chmodSync(program, 0o777);
  await refused(list, /^vault: the program .* is writable by other users \(mode 0777\)\n/);
  chmodSync(program, 0o644);
  await refused(list, /failed to start .*: permission denied/);
  rmSync(program);
  await refused(list, /failed to start .*: no such file/);
  await refused(
    [...list, '--master-key-command', 'age'],
    /^vault: --master-key-command: must be an absolute path, or a JSON list that begins with one\n {2}Example: /,
  );
  assert(!existsSync(join(dir, 'data', 'master.key')));
});

test('a master key command excludes a key file and passphrase; flags override the environment and vault.yaml', async (t) => {
  const { done, data, command, file, print } = withCommand(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const list = ['certificate', 'list', '--data-dir', data];
  const given = file(key, 'a.key');
  chmodSync(given, 0o600);
  const both = async (...args: string[]) => (await vault([...list, ...command, ...args])).stderr;
  assert.match(
    await both('--master-key-file', given),
    /^vault: --master-key-command and --master-key-file exclude each other\n {2}The master key comes either from/,
  );
  assert.match(
    await both('--master-key-passphrase-file', given),
    /and --master-key-passphrase-file exclude each other/,
  );
  writeFileSync(join(data, 'vault.yaml'), `master_key_passphrase_file: ${given}\n`);
  assert.match(
    await both(),
    /^vault: --master-key-command and master_key_passphrase_file in .*vault.yaml exclude/,
  );
  writeFileSync(join(data, 'vault.yaml'), 'master_key_command: /bin/false\n');
  // The environment still names the command that works.
  await done('certificate', 'list');
  assert.equal((await vault([...list, '--master-key-file', given])).code, 0, 'a flag beats vault.yaml');
  print('exit 1');
  await done('certificate', 'list', '--master-key-file', given);
});

test('restore requires a command that prints the key of the backup, and never writes the key to a file', async (t) => {
  const { done, print, dir, data, file, json, run, holds } = withCommand(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const backup = join(dir, 'x.backup');
  await done(
    'backup',
    backup,
    '--with-master-key',
    '--passphrase-file',
    file('several words in a row', 'phrase'),
  );
  await done('certificate', 'create', '--name=late', '--domain=b.test');
  print(`head -c 32 /dev/zero`);
  const { code, stderr } = await run('restore', backup, '--replace');
  assert.equal(code, 1);
  assert.match(
    stderr,
    /needs master key \w{16}, but the master key command prints \w{16}\n {2}Make the command print/,
  );
  print(`echo ${key.toString('base64')}`);
  const certificates = async () => (await json<unknown[]>('certificate', 'list')).length;
  assert.equal(await certificates(), 2);
  await done('restore', backup, '--replace');
  assert.equal(await certificates(), 1);
  assert(!readdirSync(data).some((name) => name.includes('key')) && !holds(key));
});

test('key rotation with a command is rejected with a procedure that uses a key file, which works', async (t) => {
  const { done, run, data, dir, print, json } = withCommand(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  for (const words of [
    ['rotate'],
    ['seal', '--passphrase-file', '-'],
    ['unseal'],
    ['remove', '--id=0123456789abcdef'],
  ]) {
    const { code, stderr } = await run('master-key', ...words);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^vault: this command needs a key file, but the master key comes from .*print key\n {2}Stop the vault, write the key to a file in memory/,
    );
  }
  const memory = join(dir, 'memory');
  mkdirSync(memory, { mode: 0o700 });
  const file = join(memory, 'key');
  writeFileSync(file, key, { mode: 0o600 });
  const rotated = await vault(['master-key', 'rotate', '--data-dir', data, '--master-key-file', file]);
  assert.equal(rotated.code, 0, rotated.stderr);
  assert.equal((await run('certificate', 'list')).code, 1, 'the key of before');
  print(`echo ${readFileSync(file).toString('base64')}`);
  renameSync(memory, `${memory} gone`);
  assert.equal((await json<unknown[]>('certificate', 'list')).length, 1);
});

test('a master key command that does not exit is killed after 60 s', async (t) => {
  const dir = tempDir(t);
  const world = new TestWorld();
  const script = hookScript(
    dir,
    `process.on('SIGTERM', () => process.exit(0)); process.stdout.write('s3cret'); setInterval(() => {}, 1000);`,
  );
  const asked = masterKeyFrom(world, script, { credentialsDir: undefined });
  await world.sleeping(1);
  world.advance(60_000);
  await assert.rejects(asked, (error: OperatorError) => {
    assert.match(
      error.message,
      /^the master key command failed: .* was killed after 60 s \(timeout\), without any output$/,
    );
    return true;
  });
});
