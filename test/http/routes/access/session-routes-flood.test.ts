/** Sign-in attempts from everywhere at once: administrators get in all the same. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { fromPage, goodPassword, makeAdministrator } from '../../../harness/http/sign-in-fixtures.ts';
import { type TestServer, testServer } from '../../../harness/http/test-server.ts';

/** Long enough that a queue forms, and short enough for a test. */
const hashCost = { memory: 8192, passes: 3, parallelism: 1 } as const;

const trustedProxies = '127.0.0.1/32';

type Door = Pick<TestServer, 'get'>;

/** The status of a sign-in from an address, as a trusted proxy tells it. */
async function statusFrom({ get }: Door, name: string, address: string, password: string): Promise<number> {
  const init = fromPage('POST', { name, password }, undefined, { headers: { 'X-Forwarded-For': address } });
  const response = await get('/api/v1/session', undefined, init);
  await response.arrayBuffer();
  return response.status;
}

/** Forty attempts at any moment, each with a name and an address of its own; ready when the queue is full. */
async function flood(t: TestContext, door: Door, addressOf: (n: number) => string) {
  let isOver = false;
  let sent = 0;
  const full = Promise.withResolvers<void>();
  const attacker = async () => {
    while (!isOver) {
      sent += 1;
      const status = await statusFrom(door, `nobody-${sent}`, addressOf(sent), 'a wrong password');
      if (status === 429) full.resolve();
    }
  };
  const attackers = Array.from({ length: 40 }, attacker);
  const end = async () => {
    isOver = true;
    await Promise.all(attackers);
  };
  t.after(end);
  await full.promise;
  return end;
}

const everywhere = (n: number) => `${1 + (n % 120)}.${n % 251}.${n % 241}.${1 + (n % 239)}`;
const oneNetwork = (n: number) => `198.51.${n % 251}.${1 + (n % 241)}`;

test('an administrator signs in from a known address during a distributed flood, even after a restart', async (t) => {
  const first = await testServer(t, { hashCost, trustedProxies });
  await makeAdministrator(first.vault, 'alice');
  const home = '203.0.113.7';
  assert.equal(await statusFrom(first, 'alice', home, goodPassword), 201);
  await first.stop();
  await first.close();
  const server = await testServer(t, {
    hashCost,
    trustedProxies,
    dataDir: first.dataDir,
    world: first.world,
  });
  const end = await flood(t, server, everywhere);
  for (let n = 0; n < 5; n += 1) {
    assert.equal(await statusFrom(server, 'Alice', home, goodPassword), 201, `attempt ${n}`);
  }
  await end();
});

test('an administrator signs in from a new address during a flood from one network', async (t) => {
  const server = await testServer(t, { hashCost, trustedProxies });
  await makeAdministrator(server.vault, 'alice');
  const end = await flood(t, server, oneNetwork);
  assert.equal(await statusFrom(server, 'alice', '203.0.113.9', goodPassword), 201);
  await end();
});

test('a known address is rate limited after five failed attempts', async (t) => {
  const server = await testServer(t, { trustedProxies });
  await makeAdministrator(server.vault, 'alice');
  const home = '203.0.113.7';
  assert.equal(await statusFrom(server, 'alice', home, goodPassword), 201);
  for (let n = 0; n < 5; n += 1)
    assert.equal(await statusFrom(server, 'alice', home, 'a wrong password'), 401);
  assert.equal(await statusFrom(server, 'alice', home, goodPassword), 429);
});
