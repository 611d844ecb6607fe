/** Where things are kept for whom, and the client against a vault that is a process of its own. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertPair, installer, machine, modeOf } from '../harness/client-installer.ts';
import { clientVault, usual } from '../harness/client-vault.ts';
import { needs } from '../harness/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { fromExecutable, fromSource, serve, vault } from '../harness/vault-process.ts';

const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? needs('setpriv') : { skip: 'only root can become somebody else' };

test('shellcheck has nothing to say about the script', needs('shellcheck'), () => {
  execFileSync('shellcheck', ['-s', 'sh', installer]);
});

test('root keeps jobs in /etc and state in /var/lib', asRoot, async (t) => {
  const client = machine(t);
  const args = ['--server', 'https://vault.example', ...usual(client), '--dry-run'];
  const dry = await client.run(args, { environment: { CERTIFICATE_VAULT_HOME: undefined } });
  assert.match(
    dry.stdout,
    /kept in {6}\/etc\/certificate-vault\/jobs\/web-(\d+) and \/var\/lib\/certificate-vault\/web-\1\n/,
  );
});

test('others keep both where XDG says', asRoot, async (t) => {
  const server = await clientVault(t);
  const client = machine(t);
  const [config, state] = [join(client.home, 'my config'), join(client.home, '.local', 'state')];
  mkdirSync(client.destination);
  for (const path of [client.home, client.destination]) chownSync(path, 65534, 65534);
  const environment = { CERTIFICATE_VAULT_HOME: undefined, XDG_CONFIG_HOME: config };
  const through = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const installed = await server.install(client, [], { environment, through });
  assert.equal(installed.code, 0, installed.stderr);
  const job = /web-\d+/.exec(client.crontab())?.[0] ?? '';
  const copy = join(config, 'certificate-vault', 'jobs', job, 'install.sh');
  assert(client.crontab().includes(` /bin/sh '${copy}' --run ${job} # `));
  assert(existsSync(join(state, 'certificate-vault', job, 'state')));
  assert.equal(statSync(join(client.destination, 'tls.key')).uid, 65534);
  assert.equal(modeOf(join(config, 'certificate-vault', 'jobs')), 0o700);
  await server.renew();
  // As cron runs it: no variable says where things are.
  const bare = { CERTIFICATE_VAULT_HOME: undefined };
  const run = await client.run(['--run', job], { script: copy, environment: bare, through });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stderr, /version 2 is installed/);
  assertPair(client);
});

test('a client of a vault process gets what the command line put there', needs('curl'), async (t) => {
  const program = existsSync(fromExecutable[0]) ? fromExecutable : fromSource;
  const dataDir = tempDir(t);
  const { url } = await serve(t, dataDir, { program });
  const command = async (...args: string[]) => {
    const { code, stdout, stderr } = await vault([...args, '--data-dir', dataDir], { program });
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await command('certificate', 'create', '--name', 'web', '--domain', 'www.example.test');
  const scopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'].flatMap((one) => [
    '--scope',
    one,
  ]);
  const key = await command('api-key', 'create', '--name', 'client', ...scopes, '--certificate', 'web');
  const client = machine(t);
  const environment = { SERVICE_API_KEY: key };
  const installed = await client.run(['--server', url, ...usual(client)], { environment });
  assert.equal(installed.code, 0, installed.stderr);
  const before = assertPair(client).fingerprint256;
  const ask = (path: string, method: string) =>
    fetch(new URL(path, url), { method, headers: { Authorization: `Bearer ${key}` } });
  const { headers } = await ask('/api/v1/certificates/web/renew', 'POST');
  let status = '';
  while (status !== 'succeeded') {
    status = ((await (await ask(headers.get('location') ?? '', 'GET')).json()) as { status: string }).status;
    assert.notEqual(status, 'failed');
  }
  assert.equal((await client.run(['--run'])).code, 0);
  assert.notEqual(assertPair(client).fingerprint256, before);
});
