/** Tests for bugs that other installers had (field-notes.md). */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertPair, installer, machine } from '../harness/client/installer.ts';
import { clientVault } from '../harness/client/vault.ts';
import { inTurnOfPlaces, inTurnOfShells } from './places.ts';

inTurnOfPlaces(
  'the reload runs only after a change, stays pending until it succeeds, and does not need the vault',
  async (t, place) => {
    const vault = await clientVault(t, place);
    const client = machine(t, place);
    const marker = join(client.home, 'works');
    const reload = `echo x >>${client.home}/reloads; test -e ${marker}`;
    const reloads = () => readFileSync(join(client.home, 'reloads'), 'utf8').length / 2;
    const installed = await vault.install(client, ['--reload-command', reload]);
    assert.equal(installed.code, 13, installed.stderr);
    assert.match(installed.stderr, /failed with exit code 1; the next run retries it/);
    assertPair(client);
    assert.notEqual(client.crontab(), '');
    assert.equal((await client.run(['--run'])).code, 13);
    assert.equal(reloads(), 2);
    assert.equal(vault.downloads().length, 2);
    assert.match((await client.run(['--status'])).stdout, /version {6}1\n(.*\n)+ {2}pending/);
    writeFileSync(marker, '');
    await vault.stop();
    assert.equal(
      (await client.run(['--run'], { environment: { CERTIFICATE_VAULT_FETCH_TRIES: '1' } })).code,
      10,
    );
    assert.equal(reloads(), 3);
    assert.equal(
      (await client.run(['--run'], { environment: { CERTIFICATE_VAULT_FETCH_TRIES: '1' } })).code,
      10,
    );
    assert.equal(reloads(), 3);
  },
);

inTurnOfShells('a reload that hangs is killed with all its children', async (t, shell) => {
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  const environment = { CERTIFICATE_VAULT_RELOAD_SECONDS: '1' };
  assert.equal((await vault.install(client)).code, 0);
  await vault.install(client, [
    '--reload-command',
    `sh -c 'echo $$ >${client.home}/pid; sleep 60; true'; true`,
  ]);
  await vault.renew();
  const run = await client.run(['--run'], { environment });
  assert.equal(run.code, 13, run.stderr);
  assert.match(run.stderr, /timed out after 1 seconds/);
  const pid = readFileSync(join(client.home, 'pid'), 'utf8').trim();
  while (isAlive(pid)) await sleep(10);
});

inTurnOfPlaces('a file that was deleted or changed is restored', async (t, place) => {
  const vault = await clientVault(t, place);
  const client = machine(t, place);
  assert.equal((await vault.install(client)).code, 0);
  const good = [client.file('tls.crt'), client.file('tls.key')];
  rmSync(join(client.destination, 'tls.key'));
  assert.equal((await client.run(['--run'])).code, 0);
  writeFileSync(join(client.destination, 'tls.crt'), 'oops');
  assert.equal((await client.run(['--run'])).code, 0);
  assert.deepEqual([client.file('tls.crt'), client.file('tls.key')], good);
});

inTurnOfShells(
  'a failing crontab -l aborts without changes; similar lines are not touched',
  async (t, shell) => {
    const vault = await clientVault(t);
    const client = machine(t, { shell });
    assert.equal((await vault.install(client)).code, 0);
    const [job = ''] = client.jobs();
    const alike = [
      `1 1 * * * true # certificate-vault:${job}-2`,
      `2 2 * * * true # my-certificate-vault:${job}`,
    ];
    writeFileSync(join(client.home, 'crontab'), `${alike.join('\n')}\n${client.crontab()}`);
    assert.equal((await vault.install(client)).code, 0);
    assert.equal((await client.run(['--uninstall', job])).code, 0);
    assert.equal(client.crontab(), `${alike.join('\n')}\n`);
    client.fake('crontab', 'echo "crontab: your account is locked" >&2; exit 1');
    const refused = await vault.install(client);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /crontab -l failed.*your account is locked/);
    assert.deepEqual(client.jobs(), []);
    assert.equal(client.crontab(), `${alike.join('\n')}\n`);
  },
);

inTurnOfShells(
  'a lock is respected while its owner lives, and taken over after its death',
  async (t, shell) => {
    const vault = await clientVault(t);
    const client = machine(t, { shell });
    assert.equal((await vault.install(client)).code, 0);
    const lock = join(client.home, 'vault', 'state', client.jobs()[0] ?? '', 'lock');
    const started = readFileSync(`/proc/${process.pid}/stat`, 'utf8').replace(/.*\) /s, '').split(' ')[19];
    writeFileSync(lock, `${process.pid} ${started}\n`);
    assert.equal((await client.run(['--run'])).code, 75);
    // The same process id, but another start time.
    writeFileSync(lock, `${process.pid} 1\n`);
    assert.equal((await client.run(['--run'])).code, 0);
    assert.equal(existsSync(lock), false);
  },
);

test('the last line of the script starts it, and the script contains no eval', () => {
  const lines = readFileSync(installer, 'utf8').split('\n');
  assert.equal(lines.at(-2), 'main "$@"');
  assert.deepEqual(
    lines.filter((line) => /^[^#]*\beval\b/.test(line)),
    [],
  );
});

/** Exited processes may stay around until they are reaped. */
function isAlive(pid: string): boolean {
  return existsSync(`/proc/${pid}`) && !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}
