/** What goes of past orders and used nonces, when, and in which portions. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { insertClientOrder } from '../../../../src/db/tables/acme-server/acme-client-orders.ts';
import { insertNonce } from '../../../../src/db/tables/acme-server/acme-nonces.ts';
import { pruneNonces, pruneOrders } from '../../../../src/domain/acme-server/orders/order-retention.ts';
import { AcmeTestClient, assertProblem, makeAcmeClient } from '../../../harness/acme/server-client.ts';
import { testServer } from '../../../harness/http/test-server.ts';

const day = 86_400_000;
const hour = 3_600_000;
const minute = 60_000;

async function opened(t: TestContext) {
  const server = await testServer(t);
  const { vault, world } = server;
  const client = await AcmeTestClient.registered(server.url, await makeAcmeClient(vault));
  assert.equal((await client.order(['www.example.test'])).status, 201);
  const [row] = await vault.db.reader.selectFrom('acme_client_orders').selectAll().execute();
  assert(row);
  const { id: _, ...values } = row;
  const stop = new AbortController();
  t.after(() => stop.abort());
  return {
    ...{ server, client, vault, world, stop },
    /** Orders with this status that expired this long ago. */
    past: (count: number, status: 'pending' | 'valid' | 'invalid' | 'processing', ago: number) =>
      vault.db.write(async (writer) => {
        const expires_at = world.now() - ago;
        for (let at = 0; at < count; at += 1)
          await insertClientOrder(writer, { ...values, status, expires_at });
      }),
    count: async (table: 'acme_client_orders' | 'acme_nonces') =>
      (await vault.db.reader.selectFrom(table).select('expires_at').execute()).length,
  };
}

test('orders of every status are pruned a week after they expire, and younger orders stay', async (t) => {
  const { vault, past, count, stop } = await opened(t);
  for (const status of ['pending', 'valid', 'invalid', 'processing'] as const) {
    await past(2, status, 7 * day + 1);
    await past(1, status, 7 * day - 1);
  }
  assert.equal(await pruneOrders(vault, stop.signal), 8);
  assert.equal(await count('acme_client_orders'), 5);
  assert.equal(await pruneOrders(vault, stop.signal), 0);
});

test('a failed order can be read for two hours and is pruned then, while open and valid ones stay', async (t) => {
  const { client, vault, world, count, stop } = await opened(t);
  const failed = await client.order(['www.example.test']);
  await client.post(failed.json.authorizations[0], { status: 'deactivated' });
  const { order: valid } = await client.issue(['www.example.test']);
  const read = (url: string | null) => {
    // The clock is set, and a nonce is valid for 15 minutes.
    client.nonces.length = 0;
    return client.post(url ?? '');
  };
  world.advance(2 * hour);
  assert.equal(await pruneOrders(vault, stop.signal), 0);
  assert.equal((await read(failed.headers.get('Location'))).json.status, 'invalid');
  world.advance(1);
  assert.equal(await pruneOrders(vault, stop.signal), 1);
  assertProblem(await read(failed.headers.get('Location')), 'malformed', 404);
  assert.equal((await read(valid)).json.status, 'valid');
  assert.equal(await count('acme_client_orders'), 2);
});

test('orders are pruned in batches of 500 with pauses until the server stops', async (t) => {
  const { vault, world, past, count, stop } = await opened(t);
  await past(1600, 'valid', 30 * day);
  const pruning = pruneOrders(vault, stop.signal);
  await world.sleeping(1);
  assert.equal(await count('acme_client_orders'), 1101);
  world.advance(20);
  await world.turn();
  await world.sleeping(1);
  assert.equal(await count('acme_client_orders'), 601);
  stop.abort();
  assert.equal(await pruning, 1000);
  assert.equal(await count('acme_client_orders'), 601);
});

test('used nonces are pruned once no process accepts them anymore', async (t) => {
  const { vault, world, count, stop } = await opened(t);
  const before = await count('acme_nonces');
  await vault.db.write(async (writer) => {
    for (let at = 0; at < 10; at += 1)
      await insertNonce(writer, Buffer.from(`nonce ${at}`), world.now() + at * minute);
  });
  world.advance(5 * minute);
  assert.equal(await pruneNonces(vault, stop.signal), 4);
  world.advance(day);
  assert.equal(await pruneNonces(vault, stop.signal), before + 6);
  assert.equal(await count('acme_nonces'), 0);
});

test('pruning writes nothing when no order or nonce is due', async (t) => {
  const { vault, stop } = await opened(t);
  const writing = t.mock.method(vault.db, 'write');
  assert.deepEqual([await pruneOrders(vault, stop.signal), await pruneNonces(vault, stop.signal)], [0, 0]);
  assert.equal(writing.mock.callCount(), 0);
});
