/** `vault serve --no-create`: a data directory that is mistyped or not mounted gets no new vault. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { commandLine } from '../../harness/processes/command-line.ts';
import { serve, vault } from '../../harness/processes/vault-process.ts';

const refusal = (dir: string) =>
  new RegExp(
    `^vault: no vault in ${dir}, and --no-create does not allow a new one\n` +
      ' {2}Mount the disk of the data directory, or correct --data-dir\\.\n {2}To create a vault there, start once without ',
  );

test('--no-create rejects a missing or empty data directory and creates nothing', async (t) => {
  const { data } = commandLine(t);
  const args = ['serve', '--data-dir', data, '--listen', '127.0.0.1:0', '--no-create'];
  const { code, stdout, stderr } = await vault(args);
  assert.deepEqual([code, stdout], [1, ''], stderr);
  assert.match(stderr, refusal(data));
  assert.equal(existsSync(data), false);
  mkdirSync(data, { mode: 0o700 });
  assert.match((await vault(args)).stderr, refusal(data));
  assert.deepEqual(readdirSync(data), []);
});

test('no_create applies in the environment and the settings file; an existing vault is served', async (t) => {
  const line = commandLine(t);
  const environment = { VAULT_NO_CREATE: 'true' };
  const create = ['certificate', 'create', '--name', 'web', '--domain', 'web.test', '--data-dir', line.data];
  assert.match((await vault(create, { environment })).stderr, refusal(line.data));
  mkdirSync(line.data, { mode: 0o700 });
  const file = join(line.data, 'vault.yaml');
  writeFileSync(file, 'no_create: true\n');
  await line.refused(['serve'], refusal(line.data));
  writeFileSync(file, '');
  await line.done('certificate', 'create', '--name', 'web', '--domain', 'web.test');
  const server = await serve(t, line.data, { args: ['--no-create'] });
  assert.equal((await server.end()).code, 0);
});

test('the systemd unit writes CERTVAULT_NO_CREATE=true to its environment file once after a start', async (t) => {
  const { data } = commandLine(t);
  const { stdout } = await vault(['systemd-unit']);
  const note = join(dirname(data), 'certificate-vault.env');
  const local = stdout.replaceAll('/etc/certificate-vault.env', note);
  const afterStart = /^ExecStartPost=-\+\/bin\/sh -c '(.*)'$/m.exec(local)?.[1] ?? '';
  assert.ok(local.includes(`\nEnvironmentFile=-${note}\n`));
  for (let starts = 0; starts < 2; starts += 1)
    assert.equal(spawnSync('/bin/sh', ['-c', afterStart]).status, 0);
  assert.equal(readFileSync(note, 'utf8'), 'CERTVAULT_NO_CREATE=true\n');
});
