/** Many clients that wait for a new version: what they cost a real server, and how their waits end. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../harness/eventually.ts';
import { open, parseReply, readToEnd, requestText } from '../harness/http/raw.ts';
import { runCommand, startServer } from './running-vault.ts';
import { shortOrder } from './short-order.ts';

const clients = 400;

/** Bytes by which the server may grow, of which most is what any load makes it grow: a waiting client costs 11 kB. */
const mostGrowth = 100e6;

const path = '/api/v1/certificates/web/fullchain.pem';
const metricsToken = 'token-of-the-waiting-crowd';

test('a crowd of waiting clients has bounded memory through changes, a replacement and a stop', async (t) => {
  const { program, folder } = shortOrder(t);
  const place = { program, data: join(folder, 'data'), environment: {} };
  const done = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await runCommand(place, args);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await done('certificate', 'create', '--name', 'web', '--domain', 'web.test');
  const key = await done(
    'api-key',
    'create',
    '--name',
    'crowd',
    '--scope',
    'certificates:read',
    '--certificate',
    '*',
  );
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, metricsToken, { mode: 0o600 });
  const { listening, kill } = startServer(place, ['--metrics-token-file', tokenFile]);
  const server = await listening;
  assert(server);
  t.after(() => kill());

  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
  const metric = async (name: string) => {
    const response = await fetch(`${server.url}/metrics`, { headers: bearer(metricsToken) });
    return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await response.text())?.[1]);
  };
  const waitingAre = (count: number) =>
    eventually(`${count} waiting requests`, async () => {
      return (await metric('certificate_vault_waiting_requests')) === count;
    });
  const gather = async () => {
    const tag = (await fetch(`${server.url}${path}`, { headers: bearer(key) })).headers.get('ETag');
    const lines = [`Authorization: Bearer ${key}`, `If-None-Match: ${tag}`, 'Connection: close'];
    const answers: Promise<string>[] = [];
    for (let count = 0; count < clients; count += 1) {
      const socket = await open(server.url);
      answers.push(readToEnd(socket));
      if (!socket.write(requestText('GET', `${path}?wait=300`, lines))) await once(socket, 'drain');
    }
    await waitingAre(clients);
    return answers;
  };
  const statuses = async (answers: readonly Promise<string>[]) => {
    const replies = (await Promise.all(answers)).map(parseReply);
    return [
      ...new Set(replies.map(({ status, headers }) => `${status} ${headers.get('Certificate-Version')}`)),
    ];
  };
  const memory = () => {
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024;
  };

  const before = memory();
  const first = await gather();
  // After each, all of them have their rights checked again.
  for (const name of ['one', 'two'])
    await done('api-key', 'create', '--name', name, '--scope', 'certificates:read', '--certificate', 'web');
  await waitingAre(clients);
  const grown = memory() - before;
  t.diagnostic(`grown by ${grown} bytes, with garbage`);
  assert(grown < mostGrowth, `${grown} bytes`);

  await done('certificate', 'revoke', '--name', 'web', '--reason', 'keyCompromise');
  assert.deepEqual(await statuses(first), ['200 2']);

  const second = await gather();
  assert.equal(await kill('SIGTERM'), '0');
  assert.deepEqual(await statuses(second), ['304 2']);
});
