/** The directories of jobs and state for root and other users. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertPair, installer, machine, modeOf } from '../harness/client/installer.ts';
import { clientVault, usual } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { enterable } from '../harness/processes/vault-process.ts';

const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? needs('setpriv') : { skip: 'only root can become another user' };

test('shellcheck reports nothing for the script', needs('shellcheck'), () => {
  execFileSync('shellcheck', ['-s', 'sh', installer]);
});

test('the served script has every part of the source, reads no other file, and prints the same help as the source', () => {
  const served = readFileSync(installer, 'utf8');
  const source = fileURLToPath(new URL('../../assets/install.sh', import.meta.url));
  const parts = readdirSync(join(dirname(source), 'installer'));
  assert.ok(parts.length > 15, parts.join());
  for (const part of parts)
    assert.ok(served.includes(readFileSync(join(dirname(source), 'installer', part), 'utf8')), part);
  assert.doesNotMatch(served, /^\. /m);
  const help = (script: string) => execFileSync('sh', [script, '--help'], { encoding: 'utf8' });
  assert.equal(help(source), help(installer));
});

test('root keeps jobs in /etc and state in /var/lib', asRoot, async (t) => {
  const client = machine(t);
  const args = ['--server', 'https://vault.example', ...usual(client), '--dry-run'];
  const dry = await client.run(args, { environment: { CERTIFICATE_VAULT_HOME: undefined } });
  assert.match(
    dry.stdout,
    /stored in {4}\/etc\/certificate-vault\/jobs\/web-(\d+) and \/var\/lib\/certificate-vault\/web-\1\n/,
  );
});

test('other users keep jobs and state in their XDG directories', asRoot, async (t) => {
  const server = await clientVault(t);
  const client = machine(t);
  const [config, state] = [join(client.home, 'my config'), join(client.home, '.local', 'state')];
  mkdirSync(client.destination);
  for (const path of [client.home, client.destination]) chownSync(path, 65534, 65534);
  const environment = { CERTIFICATE_VAULT_HOME: undefined, XDG_CONFIG_HOME: config };
  const through = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const installed = await server.install(client, [], { environment, through, script: enterable(installer) });
  assert.equal(installed.code, 0, installed.stderr);
  const job = /web-\d+/.exec(client.crontab())?.[0] ?? '';
  const copy = join(config, 'certificate-vault', 'jobs', job, 'install.sh');
  assert(client.crontab().includes(` /bin/sh '${copy}' --run ${job} # `));
  assert(existsSync(join(state, 'certificate-vault', job, 'state')));
  assert.equal(statSync(join(client.destination, 'tls.key')).uid, 65534);
  assert.equal(modeOf(join(config, 'certificate-vault', 'jobs')), 0o700);
  await server.renew();
  // Cron runs it without variables for the directories.
  const bare = { CERTIFICATE_VAULT_HOME: undefined };
  const run = await client.run(['--run', job], { script: copy, environment: bare, through });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stderr, /version 2 is installed/);
  assertPair(client);
});
