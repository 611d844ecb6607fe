/** The life of a job in every shell and with every download tool: created, unchanged, renewed, removed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertPair, type Machine, machine, modeOf } from '../harness/client/installer.ts';
import { type ClientVault, clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inEveryPlace } from './places.ts';

inEveryPlace('a job is created, updated and removed', async (t, place) => {
  await lifeOfAJob(await clientVault(t, place), machine(t, place));
});

test('a job works with BusyBox programs instead of GNU programs', needs('busybox'), async (t) => {
  await lifeOfAJob(await clientVault(t), machine(t, { shell: 'busybox', tool: 'nc', userland: 'busybox' }));
});

test('a job works with the awk of BSD and macOS', needs('original-awk'), async (t) => {
  const client = machine(t);
  client.fake('awk', 'exec original-awk "$@"');
  await lifeOfAJob(await clientVault(t), client);
});

async function lifeOfAJob(vault: ClientVault, client: Machine): Promise<void> {
  const reloads = () => client.syslog().split('reloaded').length - 1;
  const reload = `logger reloaded`;
  const installed = await vault.install(client, [
    '--reload-command',
    `${client.bin}/${reload}`,
    '--schedule',
    '17 3 * * *',
  ]);
  assert.equal(installed.code, 0, installed.stderr);
  assertPair(client);
  assert.equal(reloads(), 1);
  assert.equal(modeOf(`${client.destination}/tls.key`), 0o600);
  assert.match(
    client.crontab(),
    /^17 3 \* \* \* \/bin\/sh '.*\/install\.sh' --run web-\d+ # certificate-vault:/,
  );

  const [job = ''] = client.jobs();
  const run = () => client.run(['--run', job], { script: client.copy() });
  const before = client.file('tls.crt');
  const unchanged = await run();
  assert.equal(unchanged.code, 0, unchanged.stderr);
  assert.equal(unchanged.stderr, '');
  assert.deepEqual(vault.downloads(), ['fullchain.crt 1', 'private.key 1']);

  await vault.renew();
  const renewed = await run();
  assert.equal(renewed.code, 0, renewed.stderr);
  assert.notEqual(client.file('tls.crt'), before);
  assertPair(client);
  assert.equal(reloads(), 2);

  const status = await client.run(['--status']);
  assert.equal(status.code, 0, status.stderr + status.stdout);
  assert.match(status.stdout, /version {6}2\n/);
  const removed = await client.run(['--uninstall', job]);
  assert.equal(removed.code, 0, removed.stderr);
  assert.equal(client.crontab(), '');
  assert.deepEqual(client.jobs(), []);
  assertPair(client);
}
