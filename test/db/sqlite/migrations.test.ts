/** Migrations: whole or not at all, once, and never without a copy of what was there before. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { sql } from 'kysely';
import { Database } from '../../../src/db/database.ts';
import { type Migrations, migrations } from '../../../src/db/sqlite/migrations.ts';
import { race, sourceUrl } from '../../harness/processes/racing-processes.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

const world = new TestWorld();

const withNotes: Migrations = {
  ...migrations,
  '0099-notes': {
    up: async (db) => {
      await sql`create table notes (note text) strict`.execute(db);
      await sql`insert into notes values ('made')`.execute(db);
    },
  },
};

const withFailure: Migrations = {
  ...migrations,
  '0099-notes': {
    up: async (db) => {
      await sql`create table notes (note text) strict`.execute(db);
      await sql`delete from settings`.execute(db);
      throw new Error('no space for notes');
    },
  },
};

/** A closed database of the shipped schema in which one setting tells it from a new one. */
async function oldDatabase(t: TestContext): Promise<string> {
  const path = join(tempDir(t), 'vault.db');
  await change(path, 'first');
  return path;
}

async function change(path: string, key: string): Promise<void> {
  const db = await Database.open(path, world);
  await db.write((writer) => writer.insertInto('settings').values({ key, value: 1 }).execute());
  await db.close();
}

/** Tables, applied migrations and settings in the file. */
function contents(path: string) {
  const database = new BetterSqlite3(path);
  try {
    const all = (query: string) => database.prepare(query).pluck().all() as string[];
    return {
      tables: all("select name from sqlite_schema where type = 'table' order by name"),
      applied: all('select name from kysely_migration order by name'),
      settings: all('select key from settings order by key'),
    };
  } finally {
    database.close();
  }
}

test('a new database has the newest schema, the application ID of the vault and no copy', async (t) => {
  const path = join(tempDir(t), 'vault.db');
  await (await Database.open(path, world, { migrations: withNotes })).close();
  assert.deepEqual(contents(path).applied, [...Object.keys(migrations), '0099-notes']);
  assert.equal(readFileSync(path).toString('latin1', 68, 72), 'CVlt');
  assert.deepEqual(readdirSync(dirname(path)), ['vault.db']);
});

test('the shipped migrations and their order are unchanged', () => {
  // Append only: what stands here has shipped.
  assert.deepEqual(Object.keys(migrations), [
    '0001-first-schema',
    '0002-acme',
    '0003-console',
    '0004-audit-indexes',
    '0005-key-networks',
    '0006-audit-chain',
    '0007-audit-blocks',
    '0008-master-keys',
    '0009-notifications',
    '0010-row-tags',
    '0011-renewal-pressure',
    '0012-kept-keys',
    '0013-rotated-keys',
    '0014-nodes',
    '0015-private-ca',
    '0016-certificate-requests',
    '0017-private-cas',
    '0018-issuance-profiles',
    '0019-ca-rotation',
    '0020-acme-server',
    '0021-row-records',
    '0022-deleted-in-place',
    '0023-roles',
    '0024-pending-changes',
    '0025-oidc',
    '0026-client-certificates',
    '0027-second-factors',
    '0028-labels',
    '0029-deployments',
    '0030-deployment-alerts',
    '0031-administrator-profiles',
    '0032-endpoints',
    '0033-acme-order-limits',
    '0034-enrollments',
    '0035-replacements',
    '0036-scans',
    '0037-deploy-targets',
    '0038-open-replacements',
  ]);
});

test('a migration is applied once', async (t) => {
  const path = await oldDatabase(t);
  for (let n = 0; n < 2; n += 1) await (await Database.open(path, world, { migrations: withNotes })).close();
  assert(contents(path).tables.includes('notes'));
  assert.deepEqual(contents(path).settings, ['first', 'generation']);
});

test('a migration first copies the unchanged database to a file with mode 0600', async (t) => {
  const path = await oldDatabase(t);
  const before = contents(path);
  const mask = process.umask(0);
  t.after(() => process.umask(mask));
  await (await Database.open(path, world, { migrations: withNotes })).close();
  const copy = `${path}.before-0099-notes`;
  assert.equal(statSync(copy).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(dirname(path)).sort(), ['vault.db', basename(copy)]);
  assert.deepEqual(contents(copy), before);
  const restored = await Database.open(copy, world);
  t.after(() => restored.close());
  await restored.check();
});

test('a migration that fails changes nothing, and the old vault continues', async (t) => {
  const path = await oldDatabase(t);
  const [bytes, before] = [readFileSync(path), contents(path)];
  await assert.rejects(Database.open(path, world, { migrations: withFailure }), /no space for notes/);
  assert.deepEqual(readFileSync(path), bytes);
  assert.deepEqual(contents(path), before);
  await change(path, 'second');
});

test('the copy of a migration includes the writes since a failed attempt', async (t) => {
  const path = await oldDatabase(t);
  await assert.rejects(Database.open(path, world, { migrations: withFailure }));
  await change(path, 'second');
  await (await Database.open(path, world, { migrations: withNotes })).close();
  assert.deepEqual(contents(`${path}.before-0099-notes`).settings, ['first', 'generation', 'second']);
  assert.equal(contents(`${path}.before-0099-notes`).tables.includes('notes'), false);
});

test('a migration keeps the newest three copies and files with similar names', async (t) => {
  const path = await oldDatabase(t);
  const old = ['0002-acme', '0003-console', '0004-audit-indexes', '0005-key-networks'];
  const others = ['vault.db.before-restore-20261121T180000Z', 'vault.db.before-0002-acme.mine.txt'];
  for (const name of [...old.map((name) => `vault.db.before-${name}`), ...others]) {
    writeFileSync(join(dirname(path), name), 'x', { mode: 0o600 });
  }
  writeFileSync(join(dirname(path), 'vault.db.before-0005-key-networks.4711'), 'killed', { mode: 0o600 });
  await assert.rejects(Database.open(path, world, { migrations: withFailure }));
  assert.equal(readdirSync(dirname(path)).length, 9, 'an attempt that fails costs no copy');
  await (await Database.open(path, world, { migrations: withNotes })).close();
  assert.deepEqual(
    readdirSync(dirname(path)).sort(),
    [
      'vault.db',
      ...others,
      'vault.db.before-0004-audit-indexes',
      'vault.db.before-0005-key-networks',
      'vault.db.before-0099-notes',
    ].sort(),
  );
});

test('if no copy can be created, nothing is migrated', async (t) => {
  const path = await oldDatabase(t);
  const before = contents(path);
  mkdirSync(`${path}.before-0099-notes.draft`);
  await assert.rejects(
    Database.open(path, world, { migrations: withNotes }),
    /cannot copy the database before the upgrade: is a directory/,
  );
  assert.deepEqual(contents(path), before);
  assert.equal(existsSync(`${path}.before-0099-notes`), false);
});

const migrator = `
  const { Database } = await import(process.argv[1]);
  const { migrations } = await import(process.argv[2]);
  const { realWorld } = await import(process.argv[3]);
  const notes = {
    up: (db) => db.schema.createTable('notes').addColumn('note', 'text').execute(),
  };
  await start();
  const db = await Database.open(process.argv[4], realWorld, { migrations: { ...migrations, '0099-notes': notes } });
  await db.close();
  process.stdout.write('done');
`;

test('processes that start concurrently migrate once and copy the database from before', async (t) => {
  const path = await oldDatabase(t);
  const before = contents(path);
  const modules = ['db/database.ts', 'db/sqlite/migrations.ts', 'base/world.ts'].map(sourceUrl);
  const said = await race(t, 4, migrator, [...modules, path]);
  assert.deepEqual(said, Array(4).fill('done'));
  assert.deepEqual(contents(`${path}.before-0099-notes`), before);
  assert(contents(path).tables.includes('notes'));
});
