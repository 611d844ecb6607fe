/** SIGHUP to a running server: what it adopts, what it says needs a restart, and that an error changes nothing. */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeChain } from '../../harness/ca/openssl-chain.ts';
import { eventually } from '../../harness/eventually.ts';
import { visit } from '../../harness/http/https-client.ts';
import { type CommandLine, commandLine } from '../../harness/processes/command-line.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { type RunningVault, serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

type Line = { readonly msg: string; readonly level: string; readonly [field: string]: unknown };

const reloads = new Set(['settings reloaded', 'failed to reload the settings; keeping the current ones']);

function linesOf({ log }: RunningVault): Line[] {
  const lines = log().split('\n').slice(0, -1);
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Line);
}

/** Sends SIGHUP and returns the outcome that the server logs. */
async function reloaded(server: RunningVault): Promise<Line> {
  const outcomes = () => linesOf(server).filter(({ msg }) => reloads.has(msg));
  const before = outcomes().length;
  process.kill(server.pid, 'SIGHUP');
  return eventually('the reload', () => outcomes()[before]);
}

function settingsFile({ data }: CommandLine): (...lines: string[]) => void {
  mkdirSync(data, { mode: 0o700, recursive: true });
  return (...lines) => writeFileSync(join(data, 'vault.yaml'), lines.map((line) => `${line}\n`).join(''));
}

/** The requests in the log, after one more that is answered. */
async function requestsAfterOne(server: RunningVault, headers: Record<string, string> = {}): Promise<Line[]> {
  assert.equal((await fetch(`${server.url}/api/v1/health`, { headers })).status, 200);
  return linesOf(server).filter(({ msg }) => msg === 'request');
}

test('SIGHUP applies the settings that a server can adopt, and reports those that need a restart', async (t) => {
  const line = commandLine(t);
  const write = settingsFile(line);
  write('log_level: error');
  const server = await serve(t, line.data);
  assert.deepEqual(await requestsAfterOne(server), []);
  write(
    ...['log_level: info', 'session_idle: 10m', 'trusted_proxies: 127.0.0.1'],
    ...['public_url: http://vault.test', 'max_connections: 50', 'no_create: true'],
  );
  const { level, changed } = await reloaded(server);
  assert.deepEqual(
    [level, changed],
    ['info', { log_level: 'info', trusted_proxies: '127.0.0.1', session_idle: '10m' }],
  );
  const restart = await eventually('the rest', () =>
    linesOf(server).find(({ msg }) => msg === 'changed settings need a restart'),
  );
  assert.deepEqual([restart.level, restart.settings], ['warn', ['public_url', 'max_connections']]);
  await eventually('a request from the forwarded address', async () => {
    const requests = await requestsAfterOne(server, { 'X-Forwarded-For': '198.51.100.1' });
    return requests.find(({ ip }) => ip === '198.51.100.1');
  });
  write('log_level: error');
  assert.deepEqual((await reloaded(server)).changed, {
    log_level: 'error',
    trusted_proxies: '',
    session_idle: '30m',
  });
  assert.deepEqual(await server.end(), { code: 0, signal: null });
});

test('SIGHUP with an invalid settings file changes nothing and logs the error', async (t) => {
  const line = commandLine(t);
  const write = settingsFile(line);
  const server = await serve(t, line.data);
  for (const [text, message] of [
    ['log_level: loud', /^log_level in \S+: "loud" is not a log level$/],
    ['log_levle: info', /^settings file \S+: unknown setting "log_levle"$/],
    ['- a', /^settings file \S+: not a list of settings$/],
    ['log_level: error\nbackup_dir: /nope/b', /^--backup-dir: \/nope\/b does not exist$/],
  ] as const) {
    write(text);
    const { level, msg, err } = await reloaded(server);
    assert.deepEqual([level, msg], ['error', 'failed to reload the settings; keeping the current ones']);
    const { message: said, stack } = err as { message: string; stack?: string };
    assert.match(said, message);
    assert.equal(stack, undefined);
  }
  write('');
  assert.deepEqual((await reloaded(server)).changed, {});
  await eventually('a request', async () => (await requestsAfterOne(server))[0]);
  assert.deepEqual(await server.end(), { code: 0, signal: null });
});

test('SIGHUP applies settings although the backup directory in use is gone', async (t) => {
  const line = commandLine(t);
  const write = settingsFile(line);
  const backups = tempDir(t);
  const plan = `backup_dir: ${join(backups, 'mount')}`;
  mkdirSync(join(backups, 'mount'), { mode: 0o700 });
  write(plan);
  const server = await serve(t, line.data);
  renameSync(join(backups, 'mount'), join(backups, 'gone'));
  write(plan, 'session_idle: 10m');
  const { msg, changed } = await reloaded(server);
  assert.deepEqual([msg, changed], ['settings reloaded', { session_idle: '10m' }]);
});

test('replaced HTTPS files are served after SIGHUP', needs('openssl'), async (t) => {
  const line = commandLine(t);
  settingsFile(line)('');
  const dir = tempDir(t);
  const [first, second] = [makeChain(tempDir(t)), makeChain(tempDir(t))];
  const [cert, key] = [join(dir, 'tls.crt'), join(dir, 'tls.key')];
  const put = (chain: typeof first) => {
    for (const [path, pem] of [
      [cert, chain.fullchainPem],
      [key, chain.leaf.keyPem],
    ] as const) {
      writeFileSync(`${path}.new`, pem, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    }
  };
  put(first);
  const server = await serve(t, line.data, { args: ['--tls-cert-file', cert, '--tls-key-file', key] });
  const pin = async () => (await visit(`${server.url}/api/v1/health`)).pin;
  const before = await pin();
  put(second);
  await reloaded(server);
  await eventually('the new certificate', async () => ((await pin()) === before ? undefined : true));
});

test('the unit reloads with SIGHUP', async () => {
  const { stdout } = await vault(['systemd-unit']);
  assert.match(stdout, /^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
});
