/** Migration 0037, which rewrites the table of deployments on SQLite: what clients reported stays, on both engines. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Kysely, sql } from 'kysely';
import { realWorld } from '../../../src/base/world.ts';
import { Database } from '../../../src/db/database.ts';
import { ConnectionPool } from '../../../src/db/postgres/connection-pool.ts';
import { parseConnectionUrl } from '../../../src/db/postgres/connection-url.ts';
import { migrate, migrations as postgresMigrations } from '../../../src/db/postgres/migrations/migrations.ts';
import { postgresDialect } from '../../../src/db/postgres/postgres-dialect.ts';
import { migrations as sqliteMigrations } from '../../../src/db/sqlite/migrations.ts';
import { postgresServer } from '../../harness/postgres/postgres.ts';
import { tempDir } from '../../harness/temp-dir.ts';

type Row = Record<string, unknown>;

/** A database of the schema before; `upgrade` migrates it. */
type Old = {
  readonly run: (statement: string) => Promise<Row[]>;
  readonly upgrade: () => Promise<void>;
  /** Rows that refer to others that are missing. */
  readonly dangling: () => Promise<unknown[]>;
};

const isBefore = ([name]: readonly [string, unknown]) => name < '0037';

async function onSqlite(t: TestContext): Promise<Old> {
  const path = join(tempDir(t), 'vault.db');
  const migrations = Object.fromEntries(Object.entries(sqliteMigrations).filter(isBefore));
  let db = await Database.open(path, realWorld, { migrations });
  t.after(() => db.close());
  const run = (statement: string) =>
    db.write(async (writer) => (await sql.raw<Row>(statement).execute(writer)).rows);
  return {
    run,
    upgrade: async () => {
      await db.close();
      db = await Database.open(path, realWorld);
    },
    dangling: async () => {
      await db.check();
      return run('pragma foreign_key_check');
    },
  };
}

async function onPostgres(t: TestContext): Promise<Old> {
  const url = parseConnectionUrl(await (await postgresServer()).createDatabase(), { environment: {} });
  const pool = new ConnectionPool({ url, world: realWorld });
  t.after(() => pool.close());
  const db = new Kysely<unknown>({ dialect: postgresDialect(pool, { kind: 'write' }) });
  const upgrade = (known: typeof postgresMigrations) =>
    db.transaction().execute((transaction) => migrate(transaction, known));
  await upgrade(Object.fromEntries(Object.entries(postgresMigrations).filter(isBefore)));
  return {
    run: (statement) =>
      db.transaction().execute(async (writer) => (await sql.raw<Row>(statement).execute(writer)).rows),
    upgrade: () => upgrade(postgresMigrations),
    // The server checks what a statement adds, and this migration adds no row.
    dangling: async () => [],
  };
}

const insert = (table: string, row: Row) => {
  const values = Object.values(row).map((value) =>
    typeof value === 'string' ? `'${value}'` : String(value),
  );
  return `insert into ${table} (${Object.keys(row).join(', ')}) values (${values.join(', ')})`;
};

/** Two certificates and API keys with four deployments, of which the newest was removed. */
async function fill({ run }: Old): Promise<void> {
  for (const id of [1, 2]) {
    const certificate = { id, name: `web${id}`, domains: '["a.test"]', key_type: 'ec256', created_at: 1 };
    await run(insert('certificates', { ...certificate, auto_renew: 1, reuse_key: 0 }));
    const key = { id, name: `key${id}`, prefix: `p${id}`, hash: '#', scopes: '[]', created_at: 1 };
    await run(insert('api_keys', { ...key, any_certificate: 1 }).replace("'#'", hash));
  }
  for (const [id, certificate_id, api_key_id] of [
    [1, 1, 1],
    [2, 1, 2],
    [5, 2, 1],
    [9, 2, 2],
  ] as const) {
    const place = { name: `job-${id}`, host: `host${id}`, job: 'nginx', destination: `/tls/${id}.pem` };
    const reported = {
      version: id,
      fingerprint_sha256: 'ab',
      reload: 'ok',
      reload_output: 'höhe',
      verify: 'failed',
    };
    const more = {
      verify_output: 'bad',
      error: 'late',
      next_run_at: 70,
      client_version: '1.2',
      created_at: 10,
    };
    const times = { changed_at: 20, last_seen_at: 30, silent_at: 40, notified_state: 'outdated' };
    await run(
      insert('deployments', { id, certificate_id, api_key_id, ...place, ...reported, ...more, ...times }),
    );
  }
  await run(
    insert('deployments', {
      ...{ id: 3, certificate_id: 1, api_key_id: 1, name: 'new', host: 'h', job: 'j', destination: 'd' },
      ...{ created_at: 10, changed_at: 10, last_seen_at: 10, silent_at: 10 },
    }),
  );
  await run('delete from deployments where id = 9');
}

let hash = '';

const deployments = 'select * from deployments order by id';

for (const [engine, open] of [
  ['SQLite', onSqlite],
  ['PostgreSQL', onPostgres],
] as const) {
  test(`the deployments of clients on ${engine} are the same after the upgrade, and belong to certificates and keys`, async (t) => {
    hash = engine === 'SQLite' ? "x'00'" : "'\\x00'";
    const db = await open(t);
    await fill(db);
    const before = await db.run(deployments);
    assert.equal(before.length, 4);
    await db.upgrade();
    const after = await db.run(deployments);
    assert.deepEqual(
      after,
      before.map((row) => ({ ...row, deploy_target_id: null })),
    );
    assert.deepEqual(await db.dangling(), []);

    const row = {
      certificate_id: 1,
      host: 'h',
      job: 'j',
      destination: 'd',
      ...{ created_at: 1, changed_at: 1 },
    };
    const add = (others: Row) =>
      db.run(insert('deployments', { ...row, last_seen_at: 1, silent_at: 1, ...others }));
    await assert.rejects(add({ id: 20, name: 'job-1', api_key_id: 1 }), /unique/i, 'a name is used once');
    await assert.rejects(add({ id: 21, name: 'a', api_key_id: 77 }), /foreign key/i);
    await assert.rejects(add({ id: 22, name: 'b' }), /check/i, 'without an owner');
    const target = {
      id: 1,
      name: 't',
      type: 'ssh',
      host: 'h',
      sealed_settings: '#',
      created_at: 1,
      changed_at: 1,
    };
    await db.run(insert('deploy_targets', target).replace("'#'", hash));
    await assert.rejects(
      add({ id: 23, name: 'c', api_key_id: 1, deploy_target_id: 1 }),
      /check/i,
      'with two',
    );
    await add({ id: 24, name: 'd', deploy_target_id: 1 });

    const ids = async () => (await db.run(deployments)).map(({ id }) => Number(id));
    await db.run('delete from deploy_targets');
    assert.deepEqual(await ids(), [1, 2, 3, 5]);
    await db.run('delete from api_keys where id = 2');
    assert.deepEqual(await ids(), [1, 3, 5]);
    await db.run('delete from certificates where id = 2');
    assert.deepEqual(await ids(), [1, 3]);
  });
}

test('the id of a deployment that was removed before the upgrade on SQLite is not used again', async (t) => {
  hash = "x'00'";
  const db = await onSqlite(t);
  await fill(db);
  await db.upgrade();
  await db.run(
    insert('deployments', {
      ...{ certificate_id: 1, api_key_id: 1, name: 'next', host: 'h', job: 'j', destination: 'd' },
      ...{ created_at: 10, changed_at: 10, last_seen_at: 10, silent_at: 10 },
    }),
  );
  assert.equal(Number((await db.run(deployments)).at(-1)?.id), 10);
});
