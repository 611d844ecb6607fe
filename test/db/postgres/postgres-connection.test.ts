/**
 * Transactions on real servers: a commit is confirmed or its outcome unknown, and the first error is the one that is
 * told.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { realWorld, type World } from '../../../src/base/world.ts';
import { sessionSettings } from '../../../src/db/postgres/postgres-connection.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { testPool } from '../../harness/postgres/pool.ts';
import { type PostgresServer, postgresServer, startPostgres } from '../../harness/postgres/postgres.ts';
import { type Relay, startRelay } from '../../harness/postgres/relay.ts';
import { TestWorld } from '../../harness/test-world.ts';

const unknown = { name: 'StorageError', message: /^PostgreSQL did not confirm a commit/ };

/** A database with one table `kept`, whose column `n` is unique at the end of a transaction. */
async function database(server: PostgresServer): Promise<{ name: string; rows: () => Promise<unknown[]> }> {
  const name = new URL(await server.createDatabase()).pathname.slice(1);
  const create =
    'create table kept (n bigint unique deferrable initially deferred); grant all on kept to vault';
  await server.query(create, [], name);
  return { name, rows: () => server.query('select n::int from kept order by n', [], name) };
}

async function relayed(
  t: TestContext,
): Promise<{ relay: Relay; url: string; rows: () => Promise<unknown[]> }> {
  const server = await postgresServer();
  const { name, rows } = await database(server);
  const relay = await startRelay(t, server.port);
  return { relay, rows, url: server.url(name).replace(`:${server.port}/`, `:${relay.port}/`) };
}

test(
  'a transaction is stored when its commit resolves and leaves nothing when rolled back',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const { name, rows } = await database(server);
    const pool = testPool(t, server.url(name), { size: 1 });
    for (const end of ['commit', 'rollback'] as const) {
      const connection = await pool.begin();
      assert.equal((await connection.execute('insert into kept values ($1)', [end.length])).changes, 1);
      await connection[end]();
      pool.release(connection);
    }
    assert.deepEqual(await rows(), [{ n: 6 }]);
    assert.deepEqual((await pool.read('select n from kept')).rows, [{ n: 6 }]);
    assert.equal((await pool.read('select n from kept')).changes, undefined);
  },
);

test(
  'after a failed statement all others, and the commit, reject with its error',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const { name, rows } = await database(server);
    const pool = testPool(t, server.url(name), { size: 1 });
    const connection = await pool.begin();
    await connection.execute('insert into kept values (1)', []);
    const first = await connection.execute('select nonsense', []).catch((error: unknown) => error);
    assert.equal((first as { code?: string }).code, '42703');
    await assert.rejects(connection.execute('select 1', []), (error) => error === first);
    await assert.rejects(connection.commit(), (error) => error === first);
    pool.release(connection);
    assert.deepEqual(await rows(), []);
    // The next transaction knows nothing of it.
    const next = await pool.begin();
    assert.equal(next, connection);
    await next.execute('insert into kept values (2)', []);
    await next.commit();
    assert.deepEqual(await rows(), [{ n: 2 }]);
  },
);

test(
  'a deferred constraint violation rejects the commit with its code and keeps the connection reusable',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const { name, rows } = await database(server);
    const pool = testPool(t, server.url(name), { size: 1 });
    const connection = await pool.begin();
    await connection.execute('insert into kept values (1), (1)', []);
    await assert.rejects(connection.commit(), { code: '23505' });
    assert.equal(connection.isReusable, true);
    assert.deepEqual(await rows(), []);
  },
);

test(
  'a commit whose response is lost has an unknown outcome although it was stored',
  needsPostgres(),
  async (t) => {
    const { relay, url, rows } = await relayed(t);
    const pool = testPool(t, url);
    const connection = await pool.begin();
    await connection.execute('insert into kept values (1)', []);
    relay.pass({ requests: true, answers: false });
    const committed = assert.rejects(connection.commit(), unknown);
    while ((await rows()).length === 0);
    relay.cut();
    await committed;
    assert.equal(connection.isReusable, false);
  },
);

test('a commit that never reached the server has an unknown outcome', needsPostgres(), async (t) => {
  const { relay, url, rows } = await relayed(t);
  const pool = testPool(t, url);
  const connection = await pool.begin();
  await connection.execute('insert into kept values (1)', []);
  relay.pass({ requests: false, answers: true });
  const sent = relay.sent('commit');
  const committed = assert.rejects(connection.commit(), unknown);
  await sent;
  relay.cut();
  await committed;
  assert.deepEqual(await rows(), []);
});

/** A server whose standby is missing, and a transaction on it that wants to commit. */
async function withoutStandby(t: TestContext, world: World) {
  const server = await startPostgres(t);
  const { name, rows } = await database(server);
  await server.query(`alter system set synchronous_standby_names = 'missing'`);
  // After a reload, sessions learn it one after another.
  await server.stop();
  await server.start();
  const pool = testPool(t, server.url(name), { world });
  const connection = await pool.begin();
  await connection.execute('insert into kept values (1)', []);
  const { rows: pids } = await connection.execute('select pg_backend_pid() as pid', []);
  return { server, rows, connection, pid: (pids as { pid: number }[])[0]?.pid };
}

test('a commit without a response from the standby has an unknown outcome', needsPostgres(), async (t) => {
  const world = new TestWorld();
  const { connection } = await withoutStandby(t, world);
  const committed = assert.rejects(connection.commit(), unknown);
  for (let second = 0; second < 14; second += 1) {
    await world.sleeping(1);
    world.advance(1000);
    await world.turn();
  }
  await committed;
  assert.equal(connection.isReusable, false);
});

test('a commit that stopped waiting for its standby has an unknown outcome', needsPostgres(), async (t) => {
  const { server, rows, connection, pid } = await withoutStandby(t, realWorld);
  // PostgreSQL then answers COMMIT, with a warning before.
  const committed = assert.rejects(connection.commit(), unknown);
  const waits = `select 1 from pg_stat_activity where pid = $1 and wait_event = 'SyncRep'`;
  while ((await server.query(waits, [pid])).length === 0);
  await server.query('select pg_cancel_backend($1)', [pid]);
  await committed;
  assert.equal(connection.isReusable, false);
  assert.deepEqual(await rows(), [{ n: 1 }]);
});

test('statement and lock timeouts end the transaction but not the connection', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const { name } = await database(server);
  const pool = testPool(t, server.url(name), { limits: { statementMs: 100, lockMs: 50 } });
  const holder = await pool.begin();
  await holder.execute('lock table kept', []);
  await assert.rejects(pool.read('select pg_sleep(60)'), { name: 'StorageError', message: /57014/ });
  await assert.rejects(pool.read('select n from kept'), { name: 'StorageError', message: /55P03/ });
  await holder.commit();
  pool.release(holder);
  await pool.read('select n from kept');
  assert.equal(pool.counts.open, 2);
});

test('a longer statement timeout applies to one transaction only', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const { name } = await database(server);
  const pool = testPool(t, server.url(name), { size: 1, limits: { statementMs: 100 } });
  const long = await pool.begin('write', 20_000);
  await long.execute('select pg_sleep(0.2)', []);
  await long.commit();
  pool.release(long);
  await assert.rejects(pool.read('select pg_sleep(60)'), { message: /57014/ });
});

test('an idle transaction loses its locks and its connection', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const { name } = await database(server);
  const pool = testPool(t, server.url(name), { limits: { idleInTransactionMs: 1000 } });
  const idle = await pool.begin();
  await idle.execute('lock table kept', []);
  await pool.read('select n from kept');
  await assert.rejects(idle.execute('insert into kept values (1)', []), { name: 'StorageError' });
  await assert.rejects(idle.commit(), { name: 'StorageError' });
  assert.equal(idle.isReusable, false);
});

test('a snapshot does not see later rows and rejects writes', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const { name } = await database(server);
  const pool = testPool(t, server.url(name));
  const snapshot = await pool.begin('snapshot');
  assert.deepEqual((await snapshot.execute('select n from kept', [])).rows, []);
  await server.query('insert into kept values (1)', [], name);
  assert.deepEqual((await snapshot.execute('select n from kept', [])).rows, []);
  await assert.rejects(snapshot.execute('insert into kept values (2)', []), { message: /25006/ });
  await snapshot.rollback();
});

test(
  'temporary tables and other schemas do not shadow the tables of the vault',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const { name } = await database(server);
    await server.query('create schema vault authorization vault; create table vault.kept ()', [], name);
    const pool = testPool(t, server.url(name), { size: 1 });
    const connection = await pool.begin();
    await connection.execute('create temporary table kept (n bigint)', []);
    const { rows } = await connection.execute(
      `select 'kept'::regclass = 'public.kept'::regclass as ours`,
      [],
    );
    assert.deepEqual(rows, [{ ours: 1 }]);
    await connection.rollback();
  },
);

test('tables are created in the schema that the URL specifies', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const { name } = await database(server);
  await server.query('create schema other authorization vault', [], name);
  const pool = testPool(t, server.url(name, { schema: 'other' }));
  const connection = await pool.begin();
  await connection.execute('create table made ()', []);
  await connection.commit();
  pool.release(connection);
  assert.deepEqual((await pool.read(`select 'other.made'::regclass = 'made'::regclass as same`)).rows, [
    { same: 1 },
  ]);
});

test('sessionSettings uses set local for a transaction', () => {
  const limits = { statementMs: 1, lockMs: 2, idleInTransactionMs: 3 };
  assert.equal(
    sessionSettings('public', limits, 'local'),
    [
      'set local search_path = "public", pg_temp; set local statement_timeout = 1; set local lock_timeout = 2',
      'set local idle_in_transaction_session_timeout = 3; set local standard_conforming_strings = on',
    ].join('; '),
  );
});

test('a pipelined commit is rejected with the error of its failed statement', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const { name, rows } = await database(server);
  const pool = testPool(t, server.url(name), { size: 1, isPipelined: true });
  for (const [sql, isGood] of [
    ['insert into kept values ($1)', true],
    ['insert into kept values ($1 / 0)', false],
    ['insert into kept values ($1 + 1)', true],
  ] as const) {
    const connection = await pool.begin();
    const sent = [
      connection.execute(sql, [1]),
      connection.execute('insert into kept values (10 + $1)', [sql.length]),
      connection.commit(),
    ];
    const results = await Promise.allSettled(sent);
    const reasons = results.map((result) => (result.status === 'rejected' ? result.reason.code : 'done'));
    assert.deepEqual(reasons, isGood ? ['done', 'done', 'done'] : ['22012', '22012', '22012']);
    if (!isGood) await connection.rollback();
    assert.equal(connection.isReusable, true);
    pool.release(connection);
  }
  assert.deepEqual(await rows(), [{ n: 1 }, { n: 2 }, { n: 38 }, { n: 42 }]);
});

test(
  'an unresponsive server ends a pipelined connection and rejects its statements',
  needsPostgres(),
  async (t) => {
    const { relay, url } = await relayed(t);
    const world = new TestWorld();
    const pool = testPool(t, url, { size: 1, isPipelined: true, world, limits: { statementMs: 2000 } });
    const connection = await pool.begin();
    const sleep = connection.execute('select pg_sleep(60)', []);
    const answered = connection.execute('select 1', []);
    const refused = Promise.all([
      assert.rejects(sleep),
      assert.rejects(answered),
      assert.rejects(connection.commit()),
    ]);
    relay.pass({ requests: true, answers: false });
    for (let second = 0; second < 6; second += 1) {
      await world.sleeping(1);
      world.advance(1000);
      await world.turn();
    }
    await refused;
    assert.equal(connection.isReusable, false);
  },
);
