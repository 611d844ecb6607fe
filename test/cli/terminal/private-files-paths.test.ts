/**
 * Paths on which other users could exchange a program, a settings file or a draft: each is refused, and what the
 * refusal says to do helps.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { commandLine } from '../../harness/processes/command-line.ts';
import { fromExecutable, serve, vault } from '../../harness/processes/vault-process.ts';

const isRoot = process.getuid?.() === 0;
const rootOnly = isRoot ? {} : { skip: 'only root can give files to another user' };
const linuxOnly = fs.existsSync('/proc/self/fd') ? {} : { skip: 'this system has no /proc/self/fd' };
const nobody = 65_534;
const key = '3f'.repeat(32);
const otherPath = '  Or use another path, which only root and the user that runs the vault can change.\n';

/** A vault with one certificate, and a directory in which a test makes others' places. */
async function place(t: TestContext) {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=a.test');
  return { ...line, ...places(dirname(line.data)) };
}

function places(root: string) {
  fs.chmodSync(root, 0o755);
  return {
    root,
    directory: (name: string, mode: number, parent = root) => {
      const path = join(parent, name);
      fs.mkdirSync(path);
      fs.chmodSync(path, mode);
      return path;
    },
    script: (path: string, body: string) => {
      fs.writeFileSync(path, `#!/bin/sh\n${body}\n`);
      fs.chmodSync(path, 0o755);
      return path;
    },
  };
}

function fix(stderr: string): void {
  const [, command] = /^ {2}Fix: (.*)$/m.exec(stderr) ?? [];
  assert.ok(command, stderr);
  execFileSync('sh', ['-c', command]);
}

/** A vault with its key from a program in a directory of this mode. */
function withProgram(t: TestContext, mode: number) {
  const line = commandLine(t);
  const at = places(dirname(line.data));
  const directory = at.directory('bin', mode);
  const program = at.script(join(directory, 'getkey'), `echo ${key}`);
  const list = () => vault(['certificate', 'list', '--data-dir', line.data, '--master-key-command', program]);
  const create = () =>
    vault([
      ...['certificate', 'create', '--name=web', '--domain=a.test', '--data-dir', line.data],
      ...['--master-key-command', program],
    ]);
  return { ...line, ...at, directory, program, list, create };
}

suite('the master key command', () => {
  for (const [mode, who] of [
    [0o777, 'other users'],
    [0o775, 'its group'],
  ] as const) {
    const shown = `0${mode.toString(8)}`;
    test(`is rejected in a directory of mode ${shown}, and runs after the fix`, async (t) => {
      const { directory, program, create } = withProgram(t, mode);
      const { code, stderr } = await create();
      assert.equal(code, 1);
      const bits = mode === 0o777 ? 'go' : 'g';
      assert.equal(
        stderr,
        `vault: the master key command ${program} can be changed by other users: ` +
          `the directory ${directory} is writable by ${who} (mode ${shown})\n` +
          `  Fix: chmod ${bits}-w ${directory}\n${otherPath}`,
      );
      fix(stderr);
      assert.equal((await create()).code, 0);
    });
  }

  test('does not run once another user can replace it', rootOnly, async (t) => {
    const { root, directory, program, script, create, list, data } = withProgram(t, 0o755);
    assert.equal((await create()).code, 0);
    const server = await serve(t, data, { args: ['--master-key-command', program] });
    await server.end();
    const flag = join(root, 'ran');
    const planted = script(join(root, 'planted'), `: >${flag}; echo ${key}`);
    fs.chownSync(planted, nobody, nobody);
    fs.rmSync(program);
    fs.symlinkSync(planted, program);
    const ofOther = await list();
    assert.match(ofOther.stderr, /^vault: the program \S+ belongs to nobody, not to root\n/);
    fs.chownSync(planted, 0, 0);
    fs.lchownSync(program, nobody, nobody);
    const byLink = await list();
    assert.match(
      byLink.stderr,
      /^vault: the master key command (\S+) belongs to nobody\n {2}Use a path that only root and the user that runs the vault can change\.\n$/,
    );
    const start = await vault(['serve', '--data-dir', data, '--master-key-command', program]);
    assert.equal(start.code, 1);
    assert.match(start.stderr, /the master key command \S+ belongs to nobody/);
    fs.lchownSync(program, 0, 0);
    fs.chownSync(directory, nobody, nobody);
    assert.match((await list()).stderr, /: the directory \S+ belongs to nobody\n {2}Use a path /);
    assert.equal(fs.existsSync(flag), false, 'nothing of the other user ran');
  });

  test('may lie in a sticky directory of root, such as /tmp', rootOnly, async (t) => {
    const { create } = withProgram(t, 0o1777);
    assert.equal((await create()).code, 0);
  });

  test('runs as the file that was checked, or by its path if it is a script', linuxOnly, async (t) => {
    const { data, program, script } = withProgram(t, 0o755);
    const run = async (...words: string[]) => {
      const command = JSON.stringify(words);
      return vault(['certificate', 'list', '--data-dir', data, '--master-key-command', command]);
    };
    await withProgramCreated(data, program);
    const shell = fs.realpathSync('/bin/sh');
    const { stderr } = await run('/bin/sh', '-c', 'readlink /proc/$$/fd/3 >&2; exit 3');
    assert.match(stderr, new RegExp(`failed with exit code 3: ${shell}\n`));
    fs.writeFileSync(join(dirname(program), 'key'), key);
    script(program, '. "$(dirname "$0")/lib"; print');
    fs.writeFileSync(join(dirname(program), 'lib'), 'print() { cat "$(dirname "$0")/key"; }\n');
    const found = await run(program);
    assert.equal(found.code, 0, found.stderr);
    const printed = await run('/bin/cat', join(dirname(program), 'key'));
    assert.equal(printed.code, 0, printed.stderr);
  });
});

async function withProgramCreated(data: string, program: string): Promise<void> {
  const { code, stderr } = await vault([
    ...['certificate', 'create', '--name=web', '--domain=a.test', '--data-dir', data],
    ...['--master-key-command', program],
  ]);
  assert.equal(code, 0, stderr);
}

suite('a backup directory', () => {
  for (const mode of [0o777, 0o770]) {
    const shown = `0${mode.toString(8)}`;
    test(`of mode ${shown} gets no backup, not even a draft, until it is fixed`, async (t) => {
      const { directory, run } = await place(t);
      const backups = directory('backups', mode);
      const { code, stderr } = await run('backup', join(backups, 'x.backup'));
      assert.equal(code, 1);
      const [who, bits] = mode === 0o777 ? ['other users', 'go'] : ['its group', 'g'];
      assert.equal(
        stderr,
        `vault: the backup directory ${backups} is writable by ${who} (mode ${shown})\n` +
          `  Fix: chmod ${bits}-w ${backups}\n${otherPath}`,
      );
      assert.deepEqual(fs.readdirSync(backups), []);
      fix(stderr);
      assert.equal((await run('backup', join(backups, 'x.backup'))).code, 0);
    });
  }

  test('is rejected without a chmod command if it is a shared one such as /tmp', async (t) => {
    const { directory, run } = await place(t);
    const { code, stderr } = await run('backup', join(directory('shared', 0o1777), 'x.backup'));
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^vault: the backup directory \S+ is writable by other users \(mode 1777\)\n {2}Use a path that only /,
    );
  });

  test('may lie in a directory that its group can write to, and the doctor warns', async (t) => {
    const { directory, run, data } = await place(t);
    const backups = directory('backups', 0o700, directory('mount', 0o2775));
    assert.equal((await run('backup', join(backups, 'x.backup'))).code, 0);
    const { stdout } = await vault(['doctor', '--offline', '--data-dir', data], {
      environment: { VAULT_BACKUP_DIR: backups },
    });
    assert.match(
      stdout,
      /^WARNING +permissions +the backup directory (\S+)\/backups can be changed by other users: the directory \1 is writable by its group \(mode 2775\)\n +Fix: chmod g-w \1\n/m,
    );
  });

  test('of the settings that others can change is rejected at start and reported by doctor', async (t) => {
    const { directory, data } = await place(t);
    const open = directory('open', 0o777);
    const backups = directory('backups', 0o700, open);
    const started = await vault(['serve', '--data-dir', data, '--backup-dir', backups]);
    assert.deepEqual([started.code, started.stdout], [1, '']);
    assert.match(
      started.stderr,
      /^vault: the backup directory \S+ can be changed by other users: the directory /,
    );
    fs.writeFileSync(join(data, 'vault.yaml'), `backup_dir: ${backups}\n`);
    const { code, stdout } = await vault(['doctor', '--offline', '--data-dir', data]);
    assert.equal(code, 1);
    assert.match(stdout, /^FAILED +permissions +the backup directory \S+ can be changed by other users: /m);
    fix(started.stderr);
    const server = await serve(t, data);
    await server.end();
  });

  test('of another user is rejected', rootOnly, async (t) => {
    const { directory, run } = await place(t);
    const backups = directory('backups', 0o755);
    fs.chownSync(backups, nobody, nobody);
    const { stderr } = await run('backup', join(backups, 'x.backup'));
    assert.match(stderr, /^vault: the backup directory (\S+) belongs to nobody\n {2}Fix: chown root \1\n/);
    fix(stderr);
    assert.equal((await run('backup', join(backups, 'x.backup'))).code, 0);
  });
});

suite('a settings file', () => {
  test('in a directory that everyone can write to is rejected', async (t) => {
    const { directory, data } = await place(t);
    const open = directory('etc', 0o777);
    const file = join(open, 'vault.yaml');
    fs.writeFileSync(file, 'log_level: debug\n', { mode: 0o644 });
    const list = () => vault(['certificate', 'list', '--data-dir', data, '--config', file]);
    const { code, stderr } = await list();
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^vault: the settings file \S+ can be changed by other users: the directory \S+ is writable by other users \(mode 0777\)\n/,
    );
    fix(stderr);
    assert.equal((await list()).code, 0);
  });

  test('in the data directory is accepted even if its parent directory is writable by everyone', async (t) => {
    const { root, data } = await place(t);
    fs.writeFileSync(join(data, 'vault.yaml'), 'log_level: debug\n', { mode: 0o644 });
    fs.chmodSync(root, 0o777);
    assert.equal((await vault(['certificate', 'list', '--data-dir', data])).code, 0);
  });

  test('may come from a pipe of the shell', linuxOnly, async (t) => {
    const { data } = await place(t);
    const program = ['/bin/sh', '-c', 'echo log_level: debug | "$0" "$@"', fromExecutable[0]];
    const args = ['certificate', 'list', '--data-dir', data, '--config', '/dev/fd/0'];
    const { code, stderr } = await vault(args, { program });
    assert.equal(code, 0, stderr);
  });
});

suite('a hook', () => {
  test('of a notification channel does not run if other users can change it, and doctor reports it', async (t) => {
    const { directory, script, run, done, root, data } = await place(t);
    const open = directory('hooks', 0o777);
    const program = script(join(open, 'notify'), `cat >${join(root, 'ran')}`);
    await done('notification', 'add', 'exec', '--channel=script', `--command=${program}`);
    const { code, stderr } = await run('notification', 'test', '--channel=script');
    assert.equal(code, 1);
    assert.ok(
      stderr.includes(
        `the program ${program} can be changed by other users: the directory ${open} is writable by other users (mode 0777). Fix: chmod go-w ${open}`,
      ),
      stderr,
    );
    assert.equal(fs.existsSync(join(root, 'ran')), false);
    const doctor = () => vault(['doctor', '--offline', '--data-dir', data]);
    assert.match(
      (await doctor()).stdout,
      /^FAILED +permissions +the program \S+\/notify can be changed by other users/m,
    );
    fs.chmodSync(open, 0o775);
    await done('notification', 'test', '--channel=script');
    assert.match(
      (await doctor()).stdout,
      /^WARNING +permissions +the program \S+\/notify can be changed .* by its group/m,
    );
    fs.chmodSync(open, 0o755);
    assert.doesNotMatch((await doctor()).stdout, /the program/);
  });

  test('of a deploy target does not run if other users can change it, and doctor reports it', async (t) => {
    const { directory, script, run, done, root, file, data } = await place(t);
    const program = script(join(directory('hooks', 0o777), 'install'), `cat >${join(root, 'ran')}`);
    const settings = file(JSON.stringify({ command: [program] }));
    const add = ['--name=local', '--type=exec', `--secret-file=${settings}`];
    await done('deploy-target', 'add', ...add);
    const doctor = await vault(['doctor', '--offline', '--data-dir', data]);
    assert.match(
      doctor.stdout,
      /^FAILED +permissions +the program \S+\/install can be changed by other users/m,
    );
    await done('deploy-target', 'update', '--name=local', '--add-certificate=web');
    const { code, stderr } = await run('deploy-target', 'run', '--name=local');
    assert.equal(code, 1);
    assert.match(stderr, /web: the program \S+\/install can be changed by other users/);
    assert.equal(fs.existsSync(join(root, 'ran')), false);
  });

  test('of acme.sh does not run if other users can change the script', async (t) => {
    const { directory, script, run, done, root, file, data } = await place(t);
    const acme = script(join(directory('acme', 0o755), 'acme.sh'), '');
    const open = directory('dnsapi', 0o777);
    const path = join(open, 'dns_test.sh');
    fs.writeFileSync(path, `dns_test_add() { : >${join(root, 'ran')}; }\n`);
    const secret = file(JSON.stringify({ program: acme, script: path }));
    const add = ['--name=dns', '--type=acme-sh', '--zone=a.test', `--secret-file=${secret}`];
    await done('dns-provider', 'add', ...add);
    const { stderr } = await run('dns-provider', 'test', '--name=dns', '--domain=a.test');
    assert.ok(stderr.includes(`the program ${path} can be changed by other users`), stderr);
    assert.equal(fs.existsSync(join(root, 'ran')), false);
    const { stdout } = await vault(['doctor', '--offline', '--data-dir', data]);
    assert.match(
      stdout,
      /^FAILED +permissions +the program \S+\/dns_test\.sh can be changed by other users/m,
    );
  });
});
