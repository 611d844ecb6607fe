/** The pool: servers that restart, hang, vanish and come back, and callers that wait no longer than they must. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ConnectionPool } from '../../../src/db/postgres/connection-pool.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { testPool } from '../../harness/postgres/pool.ts';
import { type PostgresServer, postgresServer, startPostgres } from '../../harness/postgres/postgres.ts';
import { startRelay } from '../../harness/postgres/relay.ts';
import { freePort } from '../../harness/processes/port.ts';
import { TestWorld } from '../../harness/test-world.ts';

const one = 'select 1 as one';
const ones = [{ one: 1 }];

async function sessions(server: PostgresServer, url: string): Promise<number> {
  const name = new URL(url).pathname.slice(1);
  const rows = await server.query('select count(*)::int as n from pg_stat_activity where datname = $1', [
    name,
  ]);
  return rows[0]?.n as number;
}

/** Several connections, all idle. */
async function fill(pool: ConnectionPool, count: number): Promise<void> {
  const connections = await Promise.all(Array.from({ length: count }, () => pool.begin()));
  for (const connection of connections) {
    await connection.rollback();
    pool.release(connection);
  }
  assert.deepEqual(pool.counts, { open: count, busy: 0, waiting: 0 });
}

test('reads and transactions succeed after the server restarted', needsPostgres(), async (t) => {
  const server = await startPostgres(t);
  const url = await server.createDatabase();
  const [reading, writing] = [testPool(t, url), testPool(t, url)];
  for (const end of [() => server.stop('fast'), () => server.stop('immediate'), () => server.kill()]) {
    await fill(reading, 3);
    await fill(writing, 3);
    await end();
    await server.start();
    assert.deepEqual((await reading.read(one)).rows, ones);
    const connection = await writing.begin();
    await connection.commit();
    writing.release(connection);
  }
});

test('connections that were cut without notice are replaced', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const url = await server.createDatabase();
  const relay = await startRelay(t, server.port);
  const pool = testPool(t, url.replace(`:${server.port}/`, `:${relay.port}/`));
  await fill(pool, 3);
  // In the same turn: the pool has not heard of it.
  relay.cut();
  assert.deepEqual((await pool.read(one)).rows, ones);
});

test(
  'callers wait for a server that comes back and are rejected after patienceMs',
  needsPostgres(),
  async (t) => {
    const server = await startPostgres(t);
    const url = await server.createDatabase();
    const pool = testPool(t, url);
    await pool.read(one);
    await server.stop();
    await assert.rejects(testPool(t, url, { patienceMs: 200 }).read(one), {
      name: 'StorageError',
      message: /^cannot reach PostgreSQL \(127\.0\.0\.1:\d+\): connection refused$/,
    });
    const waiting = [pool.read(one), pool.read(one), pool.begin().then((connection) => connection.commit())];
    await server.start();
    await Promise.all(waiting);
  },
);

test('connection attempts to an unreachable server back off', async (t) => {
  const relay = await startRelay(t, await freePort());
  const pool = testPool(t, `postgres://u@127.0.0.1:${relay.port}/d?sslmode=disable`, { patienceMs: 2000 });
  const results = await Promise.allSettled(Array.from({ length: 50 }, () => pool.read(one)));
  assert.ok(results.every((result) => result.status === 'rejected' && result.reason.name === 'StorageError'));
  // Ten at first, for all who wait; then after pauses of 25 ms and more, each twice as long.
  assert.ok(relay.accepted() > 10 && relay.accepted() <= 18, `${relay.accepted()} attempts in 2 s`);
});

test('a statement on a paused server is rejected soon after its time limit', needsPostgres(), async (t) => {
  const server = await startPostgres(t);
  const url = await server.createDatabase();
  const world = new TestWorld();
  const pool = testPool(t, url, { world, limits: { statementMs: 2000 } });
  const connection = await pool.begin();
  server.pause();
  const silent = assert.rejects(connection.execute(one, []), {
    name: 'StorageError',
    message: /in time|lost/,
  });
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      await world.sleeping(1);
      world.advance(1000);
      // What woke up sleeps again.
      await world.turn();
    }
  };
  await pass(5);
  assert.equal(pool.counts.open, 1);
  await pass(1);
  await silent;
  pool.release(connection);
  server.resume();
  assert.deepEqual((await pool.read(one)).rows, ones);
});

test(
  'a caller is rejected when all connections stay in use, and a released one goes to the next',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const pool = testPool(t, await server.createDatabase(), { size: 2, patienceMs: 1000 });
    const [first, second] = [await pool.begin(), await pool.begin()];
    await assert.rejects(pool.read(one), {
      name: 'StorageError',
      message: /^all 2 connections to PostgreSQL are in use/,
    });
    const waiting = pool.begin();
    await second.rollback();
    pool.release(second);
    assert.equal(await waiting, second);
    assert.deepEqual(pool.counts, { open: 2, busy: 2, waiting: 0 });
    pool.release(first);
    pool.release(second);
    assert.deepEqual(pool.counts, { open: 0, busy: 0, waiting: 0 });
  },
);

test(
  '200 callers share at most 3 connections, and callers of one connection get it in order',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const url = await server.createDatabase();
    const pool = testPool(t, url, { size: 3 });
    await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const { rows } = await pool.read('select $1::int as one', [index]);
        assert.deepEqual(rows, [{ one: index }]);
      }),
    );
    assert.ok(pool.counts.open <= 3);
    assert.ok((await sessions(server, url)) <= 3);
    const single = testPool(t, url, { size: 1 });
    const callers = [1, 2, 3, 4, 5];
    const served: number[] = [];
    await Promise.all(callers.map((caller) => single.read(one).then(() => served.push(caller))));
    assert.deepEqual(served, callers);
  },
);

const lasting: readonly [string, (server: PostgresServer) => string, RegExp][] = [
  ['a missing database', (server) => server.url('missing'), /database does not exist/],
  [
    'an unknown role',
    (server) => server.url('postgres').replace('vault@', 'stranger@'),
    /refused the connection/,
  ],
];

for (const [what, url, message] of lasting) {
  test(`${what} is reported immediately without retries`, needsPostgres(), async (t) => {
    const pool = testPool(t, url(await postgresServer()), { world: new TestWorld() });
    await assert.rejects(pool.read(one), { name: 'OperatorError', message });
  });
}

test('a prepared statement that a schema change invalidated is planned again', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const url = await server.createDatabase('migrated');
  await server.query('create table t (a int); grant all on t to vault', [], 'migrated');
  const pool = testPool(t, url, { size: 1 });
  for (let time = 0; time < 5; time += 1) assert.deepEqual((await pool.read('select * from t')).rows, []);
  await server.query('alter table t add column b int; insert into t values (1, 2)', [], 'migrated');
  assert.deepEqual((await pool.read('select * from t')).rows, [{ a: 1, b: 2 }]);
});

test('a connection released with an open transaction is not reused with it', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const url = await server.createDatabase();
  const pool = testPool(t, url, { size: 1 });
  const open = await pool.begin();
  await open.execute('create table t ()', []);
  pool.release(open);
  assert.deepEqual((await pool.read(`select to_regclass('t') as t`)).rows, [{ t: null }]);
});

test('close ends all sessions and rejects waiting callers', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const url = await server.createDatabase();
  const pool = testPool(t, url, { size: 2 });
  await fill(pool, 2);
  const busy = await pool.begin();
  const other = await pool.begin();
  const waiting = assert.rejects(pool.read(one), /closed/);
  const running = assert.rejects(busy.execute('select pg_sleep(60)', []), { name: 'StorageError' });
  await pool.close();
  await waiting;
  await running;
  pool.release(other);
  await assert.rejects(pool.read(one), /closed/);
  await server.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(60)'`,
  );
  while ((await sessions(server, url)) > 0);
});

/** The pool must not keep the process from ending, nor fail it, when errors arrive while nothing waits for them. */
test('errors of idle connections do not crash the process', needsPostgres(), async (t: TestContext) => {
  const server = await postgresServer();
  const url = await server.createDatabase();
  const pool = testPool(t, url);
  await fill(pool, 2);
  const name = new URL(url).pathname.slice(1);
  await server.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
  while (pool.counts.open > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual((await pool.read(one)).rows, ones);
});

test(
  'after a failover the pool uses the promoted standby, which has every acknowledged write',
  needsPostgres(),
  async (t) => {
    const primary = await startPostgres(t, { settings: { synchronous_standby_names: 'second' } });
    const source = `host=${primary.socketDir} port=${primary.port} user=postgres application_name=second`;
    // Copies of one template are the same cluster, so that one can follow the other.
    const standby = await startPostgres(t, { standby: true, settings: { primary_conninfo: source } });
    const url = (await primary.createDatabase('d')).replace('@', `@127.0.0.1:${standby.port},`);
    await primary.query('create table t (n int); grant all on t to vault', [], 'd');
    const pool = testPool(t, url, { size: 2, patienceMs: 20_000 });
    let acknowledged = 0;
    const write = async () => {
      const connection = await pool.begin();
      try {
        await connection.execute('insert into t values ($1)', [acknowledged + 1]);
        await connection.commit();
        acknowledged += 1;
      } finally {
        pool.release(connection);
      }
    };
    for (let time = 0; time < 20; time += 1) await write();
    const unconfirmed = write().catch((error: Error) => error);
    await primary.kill();
    await standby.query('select pg_promote()');
    await unconfirmed;
    await write();
    const confirmed = acknowledged;
    const { rows } = await pool.read('select count(distinct n) as n from t where n <= $1', [confirmed]);
    assert.deepEqual(rows, [{ n: confirmed }]);
  },
);

test('an unknown role is retried if the pool had connected before', needsPostgres(), async (t) => {
  const server = await startPostgres(t);
  const url = await server.createDatabase('d');
  const pool = testPool(t, url, { patienceMs: 20_000 });
  await pool.read(one);
  await server.query('alter role vault rename to former');
  await server.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = 'd'`);
  await assert.rejects(testPool(t, url).read(one), {
    name: 'OperatorError',
    message: /refused the connection/,
  });
  const waiting = pool.read(one);
  await server.query('alter role former rename to vault');
  assert.deepEqual((await waiting).rows, ones);
});
