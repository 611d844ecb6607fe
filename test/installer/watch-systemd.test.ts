/** `--watch`: what keeps the process running that watches, and how it follows changes of its job. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertPair, type Machine, machine } from '../harness/client/installer.ts';
import { clientVault, usual } from '../harness/client/vault.ts';
import { eventually } from '../harness/eventually.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { both, inTurnOfShells } from './places.ts';
import { held, watched, watching } from './watching.ts';

const curl = needs('curl');
const scopes = ['--scope', 'certificates:read', '--scope', 'private_keys:read'];

inTurnOfShells(
  'a watching process takes over a new script and a new API key, and ends with its job',
  async (t, shell) => {
    const { vault, client, relay } = await watched(t, { shell });
    const watcher = await watching(t, client, { environment: { CERTIFICATE_VAULT_WATCH_SECONDS: '1' } });
    await held(relay);
    const key = await vault.newKey('--certificate', '*', ...scopes);
    assert.equal((await client.run(['--set-key'], { environment: { SERVICE_API_KEY: key } })).code, 0);
    const carrying = (at: number) => relay.seen[at]?.headers.authorization === `Bearer ${key}`;
    await eventually('a request has the new key', () =>
      relay.seen.some(({ method }, at) => method === 'HEAD' && carrying(at)),
    );
    const script = readFileSync(client.copy(), 'utf8');
    writeFileSync(client.copy(), script.replace('\n', '\n# Another version.\n'));
    const begun = /watching certificate "web" at .*\n/g;
    await eventually('the new script watches', () => watcher.log().match(begun)?.length === 2);
    process.kill(watcher.pid, 0);
    const removed = await client.run(['--uninstall']);
    assert.equal(removed.code, 0, removed.stderr);
    assert.equal((await watcher.ended).code, 143);
    assert.equal(existsSync(join(client.home, 'vault', 'state')), false);
  },
);

test('one process watches one job', curl, async (t) => {
  const { vault, client } = await watched(t);
  assert.equal((await vault.install(client, ['--destination', join(client.home, 'other')])).code, 0);
  const several = await client.run(['--run', '--watch']);
  assert.equal(several.code, 2, several.stderr);
  assert.match(several.stderr, /--watch is for one job; select one: web-\d+ web-\d+/);
  const unknown = await client.run(['--run', 'mail-1', '--watch']);
  assert.equal(unknown.code, 1, unknown.stderr);
});

test(
  'a job with a local key watches the certificate of the vault',
  both(curl, needs('openssl')),
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const relay = await vault.relay();
    const key = await vault.newKey(
      '--certificate',
      '*',
      '--scope',
      'certificates:read',
      '--scope',
      'certificates:sign',
    );
    const installed = await client.run(
      ['--server', relay.url, ...usual(client), '--local-key', '--watch', '--file', 'combined.pem'],
      { environment: { SERVICE_API_KEY: key } },
    );
    assert.equal(installed.code, 0, installed.stderr);
    relay.seen.length = 0;
    const before = client.file('tls.crt');
    await watching(t, client);
    const first = await held(relay);
    assert.match(relay.seen[first - 1]?.path ?? '', /\/fullchain\.crt\?wait=300$/);
    await vault.renew();
    await held(relay, first);
    assert.notEqual(client.file('tls.crt'), before);
    assertPair(client);
  },
);

/** A machine on which systemd runs; its `systemctl` succeeds and records its arguments. */
function withSystemd(client: Machine, refuse = 'none'): () => string[] {
  const path = join(client.home, 'systemctl');
  client.fake('systemctl', `echo "$*" >>"${path}"; case "$*" in *${refuse}*) exit 1 ;; esac`);
  return () =>
    (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []).filter((line) => !/show/.test(line));
}

function unitsOf(client: Machine): string[] {
  const folder = join(client.home, 'vault', 'systemd');
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

test('if systemd cannot start the service, the earlier schedule stays', curl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  withSystemd(client, 'restart*watch');
  const refused = await vault.install(client, ['--watch']);
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stderr, /cannot install the schedule; no job was created/);
  assert.deepEqual([client.jobs(), unitsOf(client), client.crontab()], [[], [], '']);
  assert.equal((await vault.install(client)).code, 0);
  const before = client.crontab();
  assert.equal((await vault.install(client, ['--watch'])).code, 1);
  assert.deepEqual([unitsOf(client), client.crontab()], [[], before]);
  assert.equal((await client.run(['--status'])).code, 0);
});

test(
  'with systemd, a service watches; the same command without --watch removes it',
  both(curl, needs('systemd-analyze')),
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const calls = withSystemd(client);
    const args = ['--schedule', '17 3 * * *'];
    assert.equal((await vault.install(client, args)).code, 0);
    assert.deepEqual([unitsOf(client), /^17 3/.test(client.crontab())], [[], true]);
    const installed = await vault.install(client, [...args, '--watch']);
    assert.equal(installed.code, 0, installed.stderr);
    const [job = ''] = client.jobs();
    const unit = `certificate-vault-${job}`;
    assert.deepEqual(unitsOf(client), [`${unit}-watch.service`, `${unit}.service`, `${unit}.timer`]);
    assert.equal(client.crontab(), '');
    const started = [`${unit}.timer`, `${unit}-watch.service`];
    assert.deepEqual(
      calls().filter((line) => line !== ''),
      [
        '--system daemon-reload',
        ...started.flatMap((name) => [`--system enable ${name}`, `--system restart ${name}`]),
      ],
    );
    assert.match(installed.stderr, new RegExp(`watching the vault: ${unit}-watch.service\n`));
    const folder = join(client.home, 'vault', 'systemd');
    const verified = execFileSync(
      'systemd-analyze',
      ['verify', '--man=no', join(folder, `${unit}-watch.service`)],
      {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    assert.equal(verified, '');
    const service = readFileSync(join(folder, `${unit}-watch.service`), 'utf8');
    assert(service.includes(`\nExecStart=/bin/sh "${client.copy()}" --run ${job} --watch\n`), service);
    assert.equal(service.includes(vault.key), false);
    const stopped = await client.run(['--status']);
    assert.match(
      stopped.stdout,
      new RegExp(`problem {6}no process watches the vault; see systemctl status ${unit}-watch.service`),
    );
    assert.equal((await vault.install(client, args)).code, 0);
    assert.deepEqual([unitsOf(client), /^17 3/.test(client.crontab())], [[], true]);
    assert(calls().includes(`--system disable --now ${unit}-watch.service`), calls().join('\n'));
    assert.equal((await vault.install(client, ['--watch'])).code, 0);
    assert.equal((await client.run(['--uninstall'])).code, 0);
    assert.deepEqual([unitsOf(client), client.crontab()], [[], '']);
  },
);
