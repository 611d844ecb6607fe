/** What `vault doctor` learns of a server: replication, safety of commits, rights, clock. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { realWorld } from '../../../src/base/world.ts';
import { serverFacts } from '../../../src/db/postgres/server-facts.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { needsPgbouncer, startPgbouncer } from '../../harness/postgres/pgbouncer.ts';
import { testPool } from '../../harness/postgres/pool.ts';
import { postgresServer, startPostgres } from '../../harness/postgres/postgres.ts';

test('serverFacts returns the settings and clock of a single server', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const { clock, version, ...facts } = await serverFacts(
    testPool(t, await server.createDatabase()),
    realWorld,
  );
  assert.match(version, /^18\./);
  assert.deepEqual(facts, {
    place: `127.0.0.1:${server.port}`,
    isEncrypted: false,
    isSocket: false,
    isPooled: false,
    synchronousCommit: 'on',
    synchronousStandbyNames: '',
    standbys: [],
    fsync: false,
    fullPageWrites: false,
    maxConnections: 200,
    isSchemaOpen: false,
  });
  // Both are this machine's; PostgreSQL has microseconds, which are cut off.
  assert.ok(clock.before <= clock.server && clock.server <= clock.after, JSON.stringify(clock));
});

test('isSchemaOpen is true if any role may create objects in the schema', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const url = await server.createDatabase('open_schema');
  await server.query('grant create on schema public to public', [], 'open_schema');
  assert.equal((await serverFacts(testPool(t, url), realWorld)).isSchemaOpen, true);
});

test('standbys are listed with their state only for a role with pg_monitor', needsPostgres(), async (t) => {
  const primary = await startPostgres(t, { settings: { synchronous_standby_names: 'second' } });
  const source = `host=${primary.socketDir} port=${primary.port} user=postgres application_name=second`;
  // Copies of one template are the same cluster, so that one can follow the other.
  await startPostgres(t, { standby: true, settings: { primary_conninfo: source } });
  const isSync = `select 1 from pg_stat_replication where sync_state = 'sync'`;
  while ((await primary.query(isSync)).length === 0);
  const pool = testPool(t, await primary.createDatabase());
  const hidden = await serverFacts(pool, realWorld);
  assert.deepEqual(hidden.standbys, [{ name: 'second', state: undefined, sync: undefined }]);
  assert.equal(hidden.synchronousStandbyNames, 'second');
  await primary.query('grant pg_monitor to vault');
  assert.deepEqual((await serverFacts(pool, realWorld)).standbys, [
    { name: 'second', state: 'streaming', sync: 'sync' },
  ]);
});

test('serverFacts reports Unix sockets and poolers', needsPgbouncer(), async (t) => {
  const server = await postgresServer();
  const name = new URL(await server.createDatabase()).pathname.slice(1);
  const socket = testPool(t, `postgres:///${name}?host=${server.socketDir}&port=${server.port}&user=vault`);
  const local = await serverFacts(socket, realWorld);
  assert.deepEqual([local.isSocket, local.isPooled, local.place], [true, false, server.socketDir]);
  const pooled = await serverFacts(testPool(t, (await startPgbouncer(t, server))(name)), realWorld);
  assert.deepEqual([pooled.isSocket, pooled.isPooled], [false, true]);
});
