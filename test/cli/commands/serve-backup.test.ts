/** `vault serve --backup-dir`: backups by time, each read through by a process of its own before it gets its name. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../harness/acme-vault.ts';
import { commandLine } from '../../harness/command-line.ts';
import { fromExecutable, fromSource, serve } from '../../harness/vault-process.ts';

for (const [form, program, more] of [
  ['executable', fromExecutable, []],
  ['source', fromSource, []],
  ['executable, on several workers,', fromExecutable, ['--workers', '2']],
] as const) {
  test(`a server from ${form} makes a backup that restores, and tells its age`, async (t) => {
    const { data, done } = commandLine(t);
    await done('certificate', 'create', '--name=web', '--domain=a.test');
    const dir = join(dirname(data), 'backups');
    mkdirSync(dir);
    const args = ['--backup-dir', dir, '--backup-every', '6h', '--backup-keep', '3', ...more];
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

test('where the directory is missing the server serves, and says what is wrong', async (t) => {
  const { data } = commandLine(t);
  const server = await serve(t, data, { args: ['--backup-dir', join(dirname(data), 'none')] });
  await eventually('the complaint', () => /backup failed.*/.exec(server.log())?.[0]);
  const ready = await fetch(`${server.url}/api/v1/ready`);
  const body = (await ready.json()) as { details: object };
  assert.deepEqual(
    [ready.status, body.details],
    [200, { backup: { state: 'failed', age_seconds: null }, disk: { state: 'ok' } }],
  );
  assert.equal(existsSync(join(dirname(data), 'none')), false);
});
