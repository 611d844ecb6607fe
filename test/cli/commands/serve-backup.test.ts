/** `vault serve --backup-dir`: backups by time, each read through by a process of its own before it gets its name. */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../harness/eventually.ts';
import { commandLine } from '../../harness/processes/command-line.ts';
import { fromExecutable, fromSource, serve, vault } from '../../harness/processes/vault-process.ts';

for (const [form, program] of [
  ['executable', fromExecutable],
  ['source', fromSource],
] as const) {
  test(`a server from ${form} creates a backup that restores, and reports its age`, async (t) => {
    const { data, done } = commandLine(t);
    await done('certificate', 'create', '--name=web', '--domain=a.test');
    const dir = join(dirname(data), 'backups');
    mkdirSync(dir);
    const args = ['--backup-dir', dir, '--backup-every', '6h', '--backup-keep', '3'];
    const server = await serve(t, data, { program, args });
    const name = await eventually('a backup', () =>
      readdirSync(dir).find((name) => /^vault-.*\.backup$/.test(name)),
    );
    await done('restore', join(dir, name), '--check');
    const details = await eventually('its age', async () => {
      const ready = (await (await fetch(`${server.url}/api/v1/ready`)).json()) as {
        details: { backup: { state: string; age_seconds: number } };
      };
      return ready.details.backup.state === 'ok' ? ready.details.backup : undefined;
    });
    assert.ok(details.age_seconds >= 0 && details.age_seconds < 600);
    assert.deepEqual((await server.end()).code, 0);
    assert.deepEqual(readdirSync(dir), [name], 'no draft is left');
  });
}

test('a --backup-dir that is missing or not a directory is rejected before anything is created', async (t) => {
  const { data, file } = commandLine(t);
  const none = join(dirname(data), 'none', 'b');
  const plain = file('');
  const hint = '  Mount its disk, or create it as the user that runs the vault.\n  Fix: mkdir -m 700 -p ';
  for (const [path, expected] of [
    [none, `vault: --backup-dir: ${none} does not exist\n${hint}${none}\n`],
    [plain, `vault: --backup-dir: ${plain} is not a directory\n${hint}${plain}\n`],
  ] as const) {
    const { code, stdout, stderr } = await vault(['serve', '--data-dir', data, '--backup-dir', path]);
    assert.deepEqual([code, stdout, stderr], [1, '', expected]);
  }
  assert.equal(existsSync(none), false);
  assert.equal(existsSync(data), false);
});

test('a --backup-dir with an unexpanded ~ is rejected with a hint', async (t) => {
  const { data } = commandLine(t);
  const { code, stderr } = await vault(['serve', '--data-dir', data, '--backup-dir', '~/backups'], {
    cwd: dirname(data),
  });
  assert.equal(code, 1);
  assert.match(stderr, /^vault: --backup-dir: \S+\/~\/backups does not exist\n {2}Write the full path: /);
});

test(
  'a --backup-dir that the user cannot write to is rejected before anything is created',
  onlyRoot(),
  async (t) => {
    const { data } = commandLine(t);
    const dir = join(dirname(data), 'backups');
    mkdirSync(dir, { mode: 0o755 });
    mkdirSync(data);
    chownSync(data, 65_534, 65_534);
    chmodSync(dirname(data), 0o755);
    const other = { uid: 65_534, gid: 65_534 };
    const { code, stderr } = await vault(['serve', '--data-dir', data, '--backup-dir', dir], other);
    assert.equal(code, 1);
    assert.equal(
      stderr,
      `vault: --backup-dir: cannot write to ${dir}: permission denied\n` +
        `  Make it writable for the user that runs the vault. A systemd service also needs ReadWritePaths=${dir}.\n`,
    );
    assert.deepEqual([readdirSync(dir), readdirSync(data)], [[], []]);
  },
);

test(
  'a failed backup is logged and reported by /ready, and the server stays ready',
  onlyRoot(),
  async (t) => {
    const { data } = commandLine(t);
    // Root may write to /proc by its mode, and cannot.
    const server = await serve(t, data, { args: ['--backup-dir', '/proc'] });
    const ready = await eventually('the complaint', async () => {
      const response = await fetch(`${server.url}/api/v1/ready`);
      const body = (await response.json()) as { details: { backup: { state: string } } };
      return body.details.backup.state === 'failed'
        ? { status: response.status, details: body.details }
        : undefined;
    });
    assert.deepEqual(
      [ready.status, ready.details],
      [200, { backup: { state: 'failed', age_seconds: null }, disk: { state: 'ok' } }],
    );
    const line = await eventually('its line in the log', () => /.*backup failed.*/.exec(server.log())?.[0]);
    assert.doesNotMatch(line, /"stack"|node:/);
  },
);

function onlyRoot(): { readonly skip?: string } {
  return process.getuid?.() === 0 ? {} : { skip: 'only root can take the part of another user' };
}
