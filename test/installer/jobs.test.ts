/** Managing jobs: the source of the API key, dry runs, --list, --status and --uninstall. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  assertPair,
  installer,
  type Machine,
  machine,
  type Shell,
  shells,
} from '../harness/client/installer.ts';
import { clientVault, usual } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurnOfShells } from './places.ts';

const curl = needs('curl');

test('the API key can come from a file, and an error explains how to provide it', curl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const file = join(client.home, 'key');
  writeFileSync(file, `${vault.key}\r\n`);
  const environment = { SERVICE_API_KEY: undefined };
  assert.equal((await vault.install(client, ['--key-file', file], { environment })).code, 0);
  assertPair(client);
  for (const bad of ['', 'two words', 'x"y']) {
    writeFileSync(file, bad);
    assert.notEqual((await vault.install(client, ['--key-file', file], { environment })).code, 0);
  }
  const missing = await client.run(['--server', vault.url, ...usual(client)], { through: ['setsid', '-w'] });
  assert.equal(missing.code, 2, missing.stderr);
  assert.match(missing.stderr, /set SERVICE_API_KEY, or use --key-file/);
});

const interrupt = '\x03';

/** Runs the script at a pseudo terminal, sends input at the prompt, and returns the output of the terminal. */
async function atTerminal(client: Machine, server: string, answer: string, shell: Shell): Promise<string> {
  const command = [...shells[shell], installer, '--server', server, ...usual(client)].join(' ');
  const environment = { HOME: client.home, PATH: `${client.bin}:${process.env.PATH}` };
  const child = spawn('script', ['-qec', `trap : INT; ${command}; stty -a`, '/dev/null'], {
    env: { ...environment, CERTIFICATE_VAULT_HOME: join(client.home, 'vault') },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let shown = '';
  let again: NodeJS.Timeout | undefined;
  try {
    for await (const chunk of child.stdout.setEncoding('utf8') as AsyncIterable<string>) {
      const asked = shown.includes('API key: ');
      shown += chunk;
      if (asked || !shown.includes('API key: ')) continue;
      child.stdin.write(answer);
      // A shell that was not reading yet continues to read, so press ^C again.
      if (answer === interrupt) again = setInterval(() => child.stdin.write(interrupt), 1000);
    }
  } finally {
    clearInterval(again);
  }
  return shown;
}

inTurnOfShells(
  'at a terminal the script prompts for the key without echo, and restores the terminal',
  async (t, shell) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const shown = await atTerminal(client, vault.url, `${vault.key}\n`, shell);
    assert.equal(shown.includes(vault.key), false);
    assert.match(shown, /[^-]echo\b/);
    assertPair(client);
    const interrupted = machine(t);
    const left = await atTerminal(interrupted, vault.url, interrupt, shell);
    assert.match(left, / echo /);
    assert.equal(existsSync(join(interrupted.home, 'vault')), false);
  },
  'script',
);

test('a dry run prints the plan and changes nothing', curl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const dry = await client.run([
    '--server',
    vault.url,
    ...usual(client),
    '--reload-command',
    'true',
    '--dry-run',
  ]);
  assert.equal(dry.code, 0, dry.stderr);
  assert.match(dry.stdout, /^would create job web-\d+\n/);
  assert.match(dry.stdout, /files {8}fullchain\.crt -> tls\.crt, private\.key -> tls\.key\n/);
  assert.deepEqual(readdirSync(client.home), ['bin']);
  assert.deepEqual(vault.downloads(), []);
  assert.equal((await vault.install(client)).code, 0);
  const [job = ''] = client.jobs();
  const removal = await client.run(['--uninstall', '--dry-run']);
  assert.match(removal.stdout, new RegExp(`^would remove job ${job}, `));
  assert.deepEqual(client.jobs(), [job]);
  const allowed = ['--server', 'http://vault.example', '--allow-http', '--dry-run', '--destination', '/x'];
  assert.equal((await client.run([...usual(client), ...allowed])).code, 0);
});

test('jobs are listed, shown, run and removed by id or by their options', curl, async (t) => {
  const vault = await clientVault(t, { certificates: ['web', 'mail'] });
  const client = machine(t);
  assert.equal((await client.run(['--status'])).code, 0);
  assert.equal((await client.run(['--run'])).code, 1);
  assert.equal((await vault.install(client)).code, 0);
  const other = join(client.home, 'mail');
  assert.equal((await vault.install(client, ['--certificate', 'mail', '--destination', other])).code, 0);
  const rows = (await client.run(['--list'])).stdout
    .trim()
    .split('\n')
    .map((line) => line.split('\t'));
  assert.deepEqual(
    rows.map(([, certificate, server, destination]) => [certificate, server, destination]),
    [
      ['mail', vault.url, other],
      ['web', vault.url, client.destination],
    ],
  );
  const status = await client.run(['--status', '--certificate', 'mail']);
  assert.equal(status.code, 0, status.stdout);
  assert.match(
    status.stdout,
    /^mail-\d+\n(.*\n)+ {2}version {6}1\n {2}expires {6}\w.*\n {2}last run {5}\S+Z 0 version 1/,
  );
  assert.equal((await client.run(['--run'])).code, 0);
  assert.equal((await client.run(['--uninstall'])).code, 2);
  assert.equal((await client.run(['--uninstall', '--certificate', 'none'])).code, 1);
  assert.equal((await client.run(['--uninstall', '--certificate', 'mail'])).code, 0);
  assert.deepEqual(readdirSync(other), ['tls.crt', 'tls.key']);
  assert.match(client.crontab(), /web-\d+\n$/);
  assert.equal((await client.run(['--uninstall'])).code, 0);
  assert.deepEqual(readdirSync(join(client.home, 'vault')), []);
});

test(
  'a job whose first download fails is not created, and an existing one stays unchanged',
  curl,
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    assert.equal((await vault.install(client)).code, 0);
    const files = ['job', 'api-key', 'install.sh', 'ca.pem'].map((name) =>
      client.copy().replace('install.sh', name),
    );
    const before = [client.crontab(), ...files.map((path) => readFileSync(path, 'utf8'))];
    const failed = await vault.install(client, ['--schedule', '1 1 * * *'], {
      environment: { SERVICE_API_KEY: 'vk_no.no' },
    });
    assert.equal(failed.code, 10);
    assert.match(failed.stderr, /no job was created/);
    assert.deepEqual([client.crontab(), ...files.map((path) => readFileSync(path, 'utf8'))], before);
    const fresh = machine(t);
    assert.equal((await vault.install(fresh, [], { environment: { SERVICE_API_KEY: 'vk_no.no' } })).code, 10);
    assert.equal(fresh.crontab(), '');
    assert.deepEqual([fresh.jobs(), existsSync(join(fresh.home, 'vault', 'jobs'))], [[], false]);
  },
);

inTurnOfShells('a failed installation removes only the directories that it created', async (t, shell) => {
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  const environment = { SERVICE_API_KEY: 'vk_no.no' };
  const deep = join(client.home, 'new', 'a b', 'tls');
  const failed = await vault.install(client, ['--destination', deep], { environment });
  assert.equal(failed.code, 10, failed.stderr);
  assert.equal(existsSync(join(client.home, 'new')), false);
  mkdirSync(join(client.home, 'kept', 'tls'), { recursive: true });
  for (const destination of [join('kept', 'tls'), join('kept', 'other', 'tls')]) {
    const args = ['--destination', join(client.home, destination)];
    assert.equal((await vault.install(client, args, { environment })).code, 10);
  }
  assert.deepEqual(readdirSync(join(client.home, 'kept')), ['tls']);
});

test('--status shows the version on disk while its reload fails', curl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal(
    (await vault.install(client, ['--reload-command', `! test -e ${client.home}/broken`])).code,
    0,
  );
  await vault.renew();
  writeFileSync(join(client.home, 'broken'), '');
  assert.equal((await client.run(['--run'])).code, 13);
  const shown = async () => (await client.run(['--status'])).stdout;
  assert.match(await shown(), /version {6}2\n(.*\n)+ {2}pending {6}reload not successful yet\n/);
  writeFileSync(join(client.destination, 'tls.crt'), 'oops\n');
  assert.match(await shown(), /version {6}1\n/);
});

test('without openssl the pair still matches, and the script reports the skipped checks', curl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  client.fake('openssl', 'exit 127');
  const installed = await vault.install(client);
  assert.equal(installed.code, 0, installed.stderr);
  assert.match(installed.stderr, /openssl is not installed; skipped the checks/);
  assertPair(client);
  assert.equal((await client.run(['--run'])).stderr, '');
  await vault.renew();
  assert.equal((await client.run(['--run'])).code, 0);
  assertPair(client);
  assert.equal((await vault.install(client, ['--verify', '127.0.0.1:443'])).code, 1);
});

test('messages also go to syslog, and a run without changes prints nothing', curl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal((await vault.install(client)).code, 0);
  assert.equal((await client.run(['--run'])).stderr, '');
  await vault.stop();
  const failed = await client.run(['--run'], { environment: { CERTIFICATE_VAULT_FETCH_TRIES: '1' } });
  assert.equal(failed.code, 10);
  assert.match(client.syslog(), /-p daemon\.info web-\d+: version 1 is installed/);
  assert.match(client.syslog(), /-p daemon\.info web-\d+: unchanged, version 1/);
  assert.match(client.syslog(), /-p daemon\.err web-\d+: http:.*refused the connection/);
  assert.equal(client.syslog().includes(vault.key), false);
});
