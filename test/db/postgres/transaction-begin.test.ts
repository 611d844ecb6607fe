/** Transactions that begin together with their first statements. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beginWith } from '../../../src/db/postgres/transaction-begin.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { testPool } from '../../harness/postgres/pool.ts';
import { postgresServer } from '../../harness/postgres/postgres.ts';
import { startRelay } from '../../harness/postgres/relay.ts';

const ownLocks = `select count(*)::int as locks from pg_locks
  where locktype = 'advisory' and pid = pg_backend_pid()`;

test('the first statements are part of the transaction', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const pool = testPool(t, await server.createDatabase(), { isPipelined: true });
  const { connection, found } = await beginWith(pool, 'write', async (begun) => {
    const locked = begun.execute('select pg_advisory_xact_lock(1)', []);
    const [, { rows }] = await Promise.all([locked, begun.execute(ownLocks, [])]);
    return rows;
  });
  assert.deepEqual(found, [{ locks: 1 }]);
  await connection.commit();
  pool.release(connection);
  assert.deepEqual((await pool.read(ownLocks)).rows, [{ locks: 0 }]);
});

test(
  'first statements are sent without waiting for BEGIN, and again if the connection is dead',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const url = await server.createDatabase();
    const relay = await startRelay(t, server.port);
    const pool = testPool(t, url.replace(`:${server.port}/`, `:${relay.port}/`), { isPipelined: true });
    await pool.read('select 1');
    relay.pass({ requests: true, answers: false });
    const sent = relay.sent('select 2 as two');
    const begun = beginWith(pool, 'write', async (each) => (await each.execute('select 2 as two', [])).rows);
    await sent;
    relay.pass({ requests: true, answers: true });
    relay.cut();
    const { connection, found } = await begun;
    assert.deepEqual(found, [{ two: 2 }]);
    assert.equal(pool.opened, 2);
    await connection.rollback();
    pool.release(connection);
  },
);

test(
  'a failed first statement rolls the transaction back and keeps the connection',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const pool = testPool(t, await server.createDatabase(), { isPipelined: true, size: 1 });
    const failing = beginWith(pool, 'write', async (begun) => {
      const locked = begun.execute('select pg_advisory_xact_lock(1)', []);
      await Promise.all([locked, begun.execute('select 1 / 0', [])]);
    });
    await assert.rejects(failing, /division by zero/);
    assert.deepEqual((await pool.read(ownLocks)).rows, [{ locks: 0 }]);
    assert.equal(pool.opened, 1);
  },
);
