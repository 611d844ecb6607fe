/** Servers for tests: rows survive a kill, and no server outlives the process that started it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { needsPostgres } from '../harness/postgres/binaries.ts';
import { type PostgresServer, postgresServer, startPostgres } from '../harness/postgres/postgres.ts';

/** Starts a server, pauses it and waits to be killed. */
const holder = `
  import { postgresServer } from ${JSON.stringify(join(import.meta.dirname, '..', 'harness', 'postgres', 'postgres.ts'))};
  const server = await postgresServer();
  server.pause();
  console.log(server.socketDir);
  setInterval(() => {}, 1000);
`;

async function folderOf(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout);
  const [line] = await once(createInterface(child.stdout), 'line');
  return String(line);
}

async function rows(server: PostgresServer): Promise<unknown[]> {
  return server.query('select * from kept', [], 'vault_1');
}

test(
  'postgresServer returns one server per process, whose databases belong to the role vault',
  needsPostgres(),
  async () => {
    const server = await postgresServer();
    assert.equal(await postgresServer(), server);
    const url = await server.createDatabase('owned');
    assert.equal(new URL(url).username, 'vault');
    const owners = await server.query(
      `select pg_get_userbyid(datdba) as owner, pg_encoding_to_char(encoding) as encoding
       from pg_database where datname = $1`,
      ['owned'],
    );
    assert.deepEqual(owners, [{ owner: 'vault', encoding: 'UTF8' }]);
    await server.dropDatabase('owned');
    assert.deepEqual(await server.query(`select 1 from pg_database where datname = 'owned'`), []);
  },
);

for (const kind of ['embedded', 'debian'] as const) {
  test(
    `a killed, stopped or paused server (${kind}) comes back with its rows`,
    needsPostgres(kind),
    async (t) => {
      const server = await startPostgres(t, { kind });
      await server.createDatabase();
      await server.query('create table kept as select 1 as kept', [], 'vault_1');
      await server.kill();
      await assert.rejects(rows(server), /ENOENT|ECONNREFUSED/);
      await server.start();
      assert.deepEqual(await rows(server), [{ kept: 1 }]);
      await server.stop('immediate');
      await server.start();
      server.pause();
      const later = rows(server);
      server.resume();
      assert.deepEqual(await later, [{ kept: 1 }]);
    },
  );
}

test('a standby server rejects writes until it is promoted', needsPostgres(), async (t) => {
  const server = await startPostgres(t, { standby: true });
  await assert.rejects(server.query('create table t ()'), { code: '25006' });
  await server.query('select pg_promote()');
  await server.query('create table t ()');
});

test('a paused server ends with a killed test process and leaves no files', needsPostgres(), async (t) => {
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', holder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const folder = await folderOf(child);
  assert.ok(existsSync(folder));
  child.kill('SIGKILL');
  // The guard removes the folder after it ended the server.
  while (existsSync(folder)) await sleep(10);
});
