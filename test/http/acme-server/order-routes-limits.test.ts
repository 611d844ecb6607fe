/** How many orders an ACME client may have open or fail, and how often it may order, also by concurrent requests. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import type { AcmeClientOrderStatus } from '../../../src/db/schema/schema-acme-server.ts';
import { AcmeTestClient, assertProblem, csrFor, makeAcmeClient } from '../../harness/acme/server-client.ts';
import { testedEngine } from '../../harness/database/tested-engine.ts';
import { testServer } from '../../harness/http/test-server.ts';

const hour = 3_600_000;
const day = 24 * hour;
const names = ['www.example.test'];

type Filled = {
  readonly status: AcmeClientOrderStatus;
  readonly finished_at?: number;
  readonly expires_at?: number;
};

async function opened(t: TestContext, others: Readonly<Record<string, unknown>> = {}) {
  const server = await testServer(t);
  const { vault, world, url } = server;
  const external = await makeAcmeClient(vault, others);
  const client = await AcmeTestClient.registered(url, external);
  const subject = `ACME client ${external.id} (${external.name})`;
  return {
    ...{ server, vault, world, external, client, subject },
    /** Moves the clock; nonces from before may have expired. */
    advance: (ms: number) => {
      world.advance(ms);
      client.nonces.length = 0;
    },
    /** Adds orders of the client like its last one, with these columns. */
    fill: async (count: number, columns: Filled) => {
      const { id: _, ...last } = await vault.db.reader
        .selectFrom('acme_client_orders')
        .selectAll()
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirstOrThrow();
      const rows = Array.from({ length: count }, () => ({ ...last, ...columns }));
      await vault.db.write(async (writer) => {
        while (rows.length > 0)
          await writer.insertInto('acme_client_orders').values(rows.splice(0, 100)).execute();
      });
    },
    orders: async () =>
      (await vault.db.reader.selectFrom('acme_client_orders').select('id').execute()).length,
  };
}

/** How many of these were created; throws unless the others were rate limited. */
function created(answers: Awaited<ReturnType<AcmeTestClient['order']>>[]): number {
  for (const answer of answers) {
    if (answer.status === 201) continue;
    assertProblem(answer, 'rateLimited', 429);
    assert(Number(answer.headers.get('Retry-After')) > 0);
  }
  return answers.filter(({ status }) => status === 201).length;
}

suite('an ACME client with 1000 open orders', () => {
  test('is told to finish them and may order again once it has finalized one', async (t) => {
    const { client, subject, fill } = await opened(t);
    const first = await client.order(names);
    await fill(999, { status: 'ready' });
    const refused = await client.order(names);
    assert.equal(
      assertProblem(refused, 'rateLimited', 429),
      `${subject} has 1000 orders that are not finished. Finalize them, or wait until they expire.`,
    );
    assert.equal(refused.headers.get('Retry-After'), '3600');
    const finalized = await client.post(first.json.finalize, { csr: await csrFor(names) });
    assert.equal(finalized.json.status, 'valid', finalized.text);
    assert.equal((await client.order(names)).status, 201);
    assertProblem(await client.order(names), 'rateLimited', 429);
  });

  test('may order again once they have expired', async (t) => {
    const { client, fill, world, advance } = await opened(t);
    await client.order(names);
    await fill(999, { status: 'pending', expires_at: world.now() + day });
    advance(day - 1);
    assertProblem(await client.order(names), 'rateLimited', 429);
    advance(1);
    assert.equal((await client.order(names)).status, 201);
  });

  test('counts a failed order among them for an hour after its failure', async (t) => {
    const { client, subject, fill, advance } = await opened(t);
    const first = await client.order(names);
    await fill(999, { status: 'processing' });
    advance(hour / 2);
    await client.post(first.json.authorizations[0], { status: 'deactivated' });
    advance(hour / 2);
    const refused = await client.order(names);
    assert.equal(
      assertProblem(refused, 'rateLimited', 429),
      `${subject} has 999 orders that are not finished, and 1 that failed within the last hour; the limit is 1000 together. Fix the errors that the orders report.`,
    );
    assert.equal(refused.headers.get('Retry-After'), '1800');
    advance(hour / 2 - 1000);
    assertProblem(await client.order(names), 'rateLimited', 429);
    advance(1000);
    assert.equal((await client.order(names)).status, 201);
  });
});

suite('concurrent orders of an ACME client', () => {
  test('do not exceed 1000 open and failed ones, while those of another client are created', async (t) => {
    const { server, vault, external, client, fill, world, orders } = await opened(t);
    await client.order(names);
    await fill(490, { status: 'pending' });
    await fill(500, { status: 'invalid', finished_at: world.now() });
    const twin = await AcmeTestClient.registered(server.url, external);
    const other = await AcmeTestClient.registered(server.url, await makeAcmeClient(vault));
    const before = await orders();
    const [answers, unconcerned] = await Promise.all([
      Promise.all(Array.from({ length: 40 }, (_, at) => (at % 2 ? client : twin).order(names))),
      Promise.all(Array.from({ length: 5 }, () => other.order(names))),
    ]);
    assert.equal(created(answers), 9);
    assert.equal(created(unconcerned), 5);
    assert.equal(await orders(), before + 14);
  });

  test('do not exceed its hourly rate, and the next one passes an hour after the first', async (t) => {
    const { client, subject, orders, advance } = await opened(t, { rate: 5 });
    await client.order(names);
    advance(1000);
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.order(names)));
    assert.equal(created(answers), 4);
    assert.equal(await orders(), 5);
    const refused = await client.order(names);
    assert.match(
      assertProblem(refused, 'rateLimited'),
      /may order 5 times per hour\. Its rate is set with "vault acme-client update \d+ --rate NUMBER"\.$/,
    );
    assert(assertProblem(refused, 'rateLimited').startsWith(subject));
    assert.equal(refused.headers.get('Retry-After'), String((hour - 1000) / 1000));
    advance(hour - 1000);
    assert.equal(created([await client.order(names), await client.order(names)]), 1);
  });

  const nodes = testedEngine === 'postgres' ? {} : { skip: 'only nodes share a database on a server' };
  test('at two nodes of one database do not exceed the limit together', nodes, async (t) => {
    const { server, client, fill, world, orders } = await opened(t);
    await client.order(names);
    await fill(989, { status: 'ready' });
    const second = await testServer(t, { dataDir: server.dataDir, world });
    const { pathname } = new URL(client.account ?? '');
    const there = await AcmeTestClient.at(second.url, { key: client.key });
    there.account = second.url + pathname;
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, at) => (at % 2 ? client : there).order(names)),
    );
    assert.equal(created(answers), 10);
    assert.equal(await orders(), 1000);
  });
});
