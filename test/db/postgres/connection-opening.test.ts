/** Opening connections: several hosts, sockets, passwords, poolers, and what the environment must not change. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { needsPostgres, passwords } from '../../harness/postgres/binaries.ts';
import { needsPgbouncer, startPgbouncer } from '../../harness/postgres/pgbouncer.ts';
import { testPool } from '../../harness/postgres/pool.ts';
import { type PostgresServer, postgresServer, startPostgres } from '../../harness/postgres/postgres.ts';
import { startRelay } from '../../harness/postgres/relay.ts';
import { freePort } from '../../harness/processes/port.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

const one = 'select 1 as one';

/** The URL of a new database, with further hosts before the server's own. */
async function behind(server: PostgresServer, ports: readonly number[]): Promise<string> {
  const others = ports.map((port) => `127.0.0.1:${port},`).join('');
  return (await server.createDatabase()).replace('@', `@${others}`);
}

async function placeOf(t: TestContext, url: string): Promise<string> {
  const connection = await testPool(t, url).begin();
  return connection.facts.place;
}

test('the first host that accepts writes is used', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const standby = await startPostgres(t, { standby: true });
  const silent = await startRelay(t);
  const expected = `127.0.0.1:${server.port}`;
  assert.equal(await placeOf(t, await behind(server, [])), expected);
  assert.equal(await placeOf(t, await behind(server, [await freePort()])), expected);
  assert.equal(await placeOf(t, await behind(server, [silent.port, await freePort()])), expected);
  const url = (await behind(server, [standby.port])).replace(/vault_\d+/, 'postgres');
  assert.equal(await placeOf(t, url), expected);
});

test('the error lists all hosts if none accepts writes', needsPostgres(), async (t) => {
  const standby = await startPostgres(t, { standby: true });
  const closed = await freePort();
  const url = `postgres://vault@127.0.0.1:${closed},127.0.0.1:${standby.port}/postgres`;
  await assert.rejects(testPool(t, url, { patienceMs: 500 }).read(one), (error: Error) => {
    assert.equal(error.name, 'StorageError');
    assert.match(error.message, /^no PostgreSQL server takes writes: .*connection refused; .* read-only/);
    return true;
  });
});

test('a connection attempt to an unresponsive host ends after connect_timeout', async (t) => {
  const silent = await startRelay(t);
  const world = new TestWorld();
  const pool = testPool(t, `postgres://u@127.0.0.1:${silent.port}/d?connect_timeout=3`, {
    world,
    patienceMs: 4000,
  });
  const refused = assert.rejects(pool.read(one), { name: 'StorageError', message: /did not answer in time/ });
  await world.sleeping(2);
  while (silent.accepted() < 1) await world.turn();
  world.advance(3000);
  // The patience of the caller, and the pause before the next attempt.
  while (silent.open() > 0) await world.turn();
  await world.sleeping(2);
  world.advance(1000);
  await refused;
});

test('a server is reached by its unix socket', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const name = new URL(await server.createDatabase()).pathname.slice(1);
  const pool = testPool(t, `postgres:///${name}?host=${server.socketDir}&port=${server.port}&user=vault`);
  const { rows } = await pool.read('select inet_client_addr() as address');
  assert.deepEqual(rows, [{ address: null }]);
});

test(
  'passwords are read from URL, environment or file and do not appear in errors',
  needsPostgres(),
  async (t) => {
    for (const method of ['scram-sha-256', 'password']) {
      const server = await startPostgres(t, {
        access: ['local all all trust', `host all all all ${method}`],
      });
      const url = server.url('postgres');
      const file = join(tempDir(t), 'pgpass');
      writeFileSync(file, `127.0.0.1:${server.port}:*:vault:${passwords.vault}\n`, { mode: 0o600 });
      await testPool(t, url.replace('vault@', `vault:${passwords.vault}@`)).read(one);
      await testPool(t, url, { environment: { PGPASSWORD: passwords.vault } }).read(one);
      await testPool(t, url, { environment: { PGPASSFILE: file } }).read(one);
      await assert.rejects(testPool(t, url).read(one), {
        name: 'OperatorError',
        message: `PostgreSQL asks for a password (127.0.0.1:${server.port})`,
      });
      await assert.rejects(
        testPool(t, url.replace('vault@', 'vault:gue%20ss@')).read(one),
        (error: Error) => {
          assert.equal(error.message, `PostgreSQL refused the password (127.0.0.1:${server.port}, 28P01)`);
          assert.ok(!JSON.stringify(error).includes('gue'));
          return true;
        },
      );
    }
  },
);

test(
  'PG* environment variables for other programs do not change session settings',
  needsPostgres(),
  async (t) => {
    const variables = {
      PGOPTIONS: '-c statement_timeout=1',
      PGREPLICATION: 'database',
      PGAPPNAME: 'other',
      PGHOST: 'x',
    };
    const server = await postgresServer();
    const url = await server.createDatabase();
    Object.assign(process.env, variables);
    t.after(() => {
      for (const name of Object.keys(variables)) delete process.env[name];
    });
    const pool = testPool(t, url, { limits: { statementMs: 7000, lockMs: 3000 } });
    const names = ['statement_timeout', 'lock_timeout', 'application_name', 'search_path', 'client_encoding'];
    const columns = names.map((name) => `current_setting('${name}') as ${name}`).join(', ');
    assert.deepEqual((await pool.read(`select ${columns}`)).rows, [
      {
        ...{ statement_timeout: '7s', lock_timeout: '3s', application_name: 'vault' },
        ...{ search_path: 'public, pg_temp', client_encoding: 'UTF8' },
      },
    ]);
  },
);

test(
  'behind PgBouncer each statement has the session settings and leaks none to other clients',
  needsPgbouncer(),
  async (t) => {
    const server = await postgresServer();
    const name = new URL(await server.createDatabase()).pathname.slice(1);
    const via = await startPgbouncer(t, server);
    const pool = testPool(t, via(name), { size: 8, limits: { statementMs: 7000 } });
    const settings = `select current_setting('search_path') as path, current_setting('statement_timeout') as time`;
    const safe = [{ path: 'public, pg_temp', time: '7s' }];
    const client = new pg.Client(via(name));
    await client.connect();
    t.after(() => client.end());
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        assert.deepEqual((await pool.read(settings)).rows, safe);
        const connection = await pool.begin();
        assert.equal(connection.facts.isPooled, true);
        assert.deepEqual((await connection.execute(settings, [])).rows, safe);
        await (index % 2 === 0 ? connection.commit() : connection.rollback());
        pool.release(connection);
        // Often enough that statements would be prepared.
        assert.deepEqual((await pool.read('select $1::int as one', [index])).rows, [{ one: index }]);
      }),
    );
    const { rows } = await client.query(settings);
    await client.end();
    assert.deepEqual(rows, [{ path: '"$user", public', time: '0' }]);
    await assert.rejects(pool.read('select nonsense'), { code: '42703' });
    assert.deepEqual((await pool.read(one)).rows, [{ one: 1 }]);
  },
);

test('reads behind PgBouncer succeed after a restart of the server', needsPgbouncer(), async (t) => {
  const server = await startPostgres(t);
  const name = new URL(await server.createDatabase()).pathname.slice(1);
  const via = await startPgbouncer(t, server, { server_login_retry: '0.2' });
  const pool = testPool(t, via(name));
  await pool.read(one);
  await server.kill();
  await server.start();
  // PgBouncer answers the first with an error of its own, or notices before.
  assert.deepEqual((await pool.read(one)).rows, [{ one: 1 }]);
});

test(
  'a direct connection is not treated as pooled and keeps prepared statements',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const pool = testPool(t, await server.createDatabase(), { size: 1 });
    for (let time = 0; time < 4; time += 1) await pool.read('select $1::int as one', [1]);
    const connection = await pool.begin();
    assert.equal(connection.facts.isPooled, false);
    const { rows } = await connection.execute('select statement from pg_prepared_statements', []);
    assert.deepEqual(rows, [{ statement: 'select $1::int as one' }]);
    await connection.commit();
    pool.release(connection);
  },
);

test('importing the connection pool does not load the pg library', () => {
  const pool = join(import.meta.dirname, '../../../src/db/postgres/connection-pool.ts');
  const script = `
    import { createRequire } from 'node:module';
    await import(${JSON.stringify(pool)});
    const loaded = Object.keys(createRequire(import.meta.url).cache).filter((path) => /node_modules.pg/.test(path));
    console.log(JSON.stringify(loaded));
    await import('pg');
    console.log(Object.keys(createRequire(import.meta.url).cache).some((path) => /node_modules.pg/.test(path)));`;
  const options = { cwd: join(import.meta.dirname, '../../..'), encoding: 'utf8' } as const;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], options);
  assert.equal(stdout, '[]\ntrue\n');
});
