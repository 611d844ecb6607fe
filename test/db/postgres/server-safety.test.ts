/** Servers on which nothing would be safe are refused, and standbys are no place to write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requireSafeServer, type ServerState } from '../../../src/db/postgres/server-safety.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { testPool } from '../../harness/postgres/pool.ts';
import { postgresServer, startPostgres } from '../../harness/postgres/postgres.ts';

const good: ServerState = {
  version: 130_000,
  encoding: 'UTF8',
  synchronousCommit: 'on',
  isInRecovery: false,
  isReadOnly: false,
};

test('PostgreSQL 13 and newer with synchronous commits is accepted', () => {
  requireSafeServer(good, 'db');
  for (const synchronousCommit of ['remote_write', 'remote_apply']) {
    requireSafeServer({ ...good, version: 180_004, synchronousCommit }, 'db');
  }
});

const refused: readonly [Partial<ServerState>, string, RegExp][] = [
  [{ version: 120_022 }, 'OperatorError', /^PostgreSQL 12 is too old \(db\)$/],
  [{ encoding: 'SQL_ASCII' }, 'OperatorError', /encoding SQL_ASCII, not UTF8/],
  [{ synchronousCommit: 'off' }, 'OperatorError', /synchronous_commit = off/],
  [{ synchronousCommit: 'local' }, 'OperatorError', /synchronous_commit = local/],
  [{ isInRecovery: true }, 'StorageError', /is read-only/],
  [{ isReadOnly: true }, 'StorageError', /is read-only/],
];

for (const [change, name, message] of refused) {
  test(`a server with ${JSON.stringify(change)} is rejected with a hint`, () => {
    assert.throws(
      () => requireSafeServer({ ...good, ...change }, 'db'),
      (error: { name: string; message: string; hint?: string }) => {
        assert.equal(error.name, name);
        assert.match(error.message, message);
        assert.ok(error.hint);
        return true;
      },
    );
  });
}

test(
  'a real server with synchronous_commit off or encoding SQL_ASCII is rejected',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const url = await server.createDatabase('hasty');
    await server.query(`alter database hasty set synchronous_commit = off`);
    await assert.rejects(testPool(t, url).read('select 1'), { name: 'OperatorError', message: /= off/ });
    await server.query('create database ascii owner vault template template0 encoding sql_ascii');
    await assert.rejects(testPool(t, server.url('ascii')).read('select 1'), { message: /SQL_ASCII/ });
  },
);

test('a standby is used once it has been promoted, and not before', needsPostgres(), async (t) => {
  const server = await startPostgres(t, { standby: true });
  const pool = testPool(t, server.url('postgres'));
  await assert.rejects(testPool(t, server.url('postgres'), { patienceMs: 300 }).read('select 1'), {
    name: 'StorageError',
    message: /is read-only/,
  });
  const waiting = pool.read('select 1 as one');
  await server.query('select pg_promote()');
  assert.deepEqual((await waiting).rows, [{ one: 1 }]);
});

test('a server with default_transaction_read_only is rejected as read-only', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const url = await server.createDatabase('fenced');
  await server.query('alter database fenced set default_transaction_read_only = on');
  await assert.rejects(testPool(t, url, { patienceMs: 200 }).begin(), {
    name: 'StorageError',
    message: /read-only/,
  });
});
