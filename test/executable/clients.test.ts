/**
 * The settings about clients, in the built vault: behind a proxy, with keys for networks, and with limits that are met.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { eventually } from '../harness/eventually.ts';
import { eventsOf } from '../harness/http/fixtures.ts';
import { open, rawRequest } from '../harness/http/raw.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const path = '/api/v1/certificates/web/certificate.crt';

test('--trusted-proxies, networks of API keys, the rate limit and --max-connections are enforced', async (t) => {
  const dir = tempDir(t);
  const common = ['--data-dir', dir];
  await vault(['certificate', 'create', '--name', 'web', '--domain', 'web.test', ...common]);
  const rights = ['--scope=certificates:read', '--certificate=web'];
  const bound = ['--allow-ip=192.0.2.0/24', '--allow-ip=2001:db8::7'];
  const made = await vault(['api-key', 'create', '--name', 'bound', ...rights, ...bound, ...common]);
  assert.equal(made.code, 0, made.stderr);
  const free = await vault(['api-key', 'create', '--name', 'free', ...rights, ...common]);
  const { url, log } = await serve(t, dir, {
    args: ['--trusted-proxies', '127.0.0.1', '--max-connections=10'],
    environment: { VAULT_API_KEY_RATE: '5' },
  });
  const ask = async (key: string, from: string, more: readonly string[] = []) => {
    const lines = [`Authorization: Bearer ${key.trim()}`, `X-Forwarded-For: ${from}`, ...more];
    return (await rawRequest(url, 'GET', path, lines)).status;
  };

  assert.equal(await ask(made.stdout, '192.0.2.9'), 200);
  assert.equal(await ask(made.stdout, '192.0.2.9, 198.51.100.1'), 403);
  assert.equal(await ask(made.stdout, '[2001:db8::7]:4711'), 200);
  assert.equal(await ask(made.stdout, '192.0.2.9', ['Forwarded: for=192.0.2.10']), 400);
  assert.deepEqual(
    eventsOf(dir, 'access.refuse').map(({ ip, detail }) => [ip, detail.reason]),
    [['198.51.100.1', 'network']],
  );

  const statuses = [];
  for (let count = 0; count < 6; count += 1) statuses.push(await ask(free.stdout, `203.0.113.${count}`));
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429]);

  const silent = await Promise.all(Array.from({ length: 10 }, () => open(url)));
  const [oldest] = silent;
  assert(oldest);
  const gone = once(oldest, 'close');
  assert.equal((await rawRequest(url, 'GET', '/api/v1/health')).status, 200);
  await gone;
  await eventually('the line about the limit', () =>
    log().includes('connection limit (--max-connections) reached'),
  );
  for (const socket of silent) socket.destroy();
});

test('without --trusted-proxies no header changes the IP address of the client', async (t) => {
  const dir = tempDir(t);
  const common = ['--data-dir', dir];
  const rights = ['--scope=certificates:read', '--certificate=*', '--allow-ip=192.0.2.0/24'];
  const { stdout } = await vault(['api-key', 'create', '--name', 'bound', ...rights, ...common]);
  const { url } = await serve(t, dir);
  const headers = [
    'X-Forwarded-For: 192.0.2.9',
    'Forwarded: for=192.0.2.9',
    'X-Real-IP: 192.0.2.9',
    'Client-IP: 192.0.2.9',
  ];
  for (const line of headers) {
    const lines = [`Authorization: Bearer ${stdout.trim()}`, line];
    assert.equal((await rawRequest(url, 'GET', '/api/v1/certificates', lines)).status, 403, line);
  }
  assert.deepEqual(
    eventsOf(dir, 'access.refuse').map(({ ip }) => ip),
    headers.map(() => '127.0.0.1'),
  );
});
