/** The list of tables against the schemas that the engines really have: a new column cannot be forgotten in copies. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { Database } from '../../../src/db/database.ts';
import { keptTables, numberedTables, passingTables } from '../../../src/db/schema/table-list.ts';
import { sealedPlaces } from '../../../src/db/tables/sealed-blobs.ts';
import { needsPostgres, postgresBinaries } from '../../harness/postgres/binaries.ts';
import { postgresServer } from '../../harness/postgres/postgres.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

type Shape = { readonly key: string[]; readonly columns: [string, string][] };

const passing: readonly string[] = passingTables;

const sorted = (columns: Iterable<readonly [string, string]>) =>
  [...columns].map(([name, kind]): [string, string] => [name, kind]).sort(([a], [b]) => (a < b ? -1 : 1));

const listed = Object.fromEntries(
  keptTables.map(([name, { key, columns }]) => [name, { key: [...key], columns: sorted(columns) }]),
);

const order = keptTables.map(([name]) => name as string);

/** A table is filled after those that it refers to. */
function assertOrder(references: readonly { readonly from: string; readonly to: string }[]): void {
  assert.ok(references.length > 10);
  const wrong = references.filter(({ from, to }) => from !== to && order.indexOf(from) < order.indexOf(to));
  assert.deepEqual(wrong, []);
}

test('the list has the tables of SQLite with their keys and column types in foreign key order', async (t) => {
  const path = join(tempDir(t), 'vault.db');
  await (await Database.open(path, new TestWorld())).close();
  const db = new BetterSqlite3(path, { readonly: true });
  t.after(() => db.close());
  const tables = db
    .prepare(
      "select name, sql from sqlite_schema where type = 'table' and name not like 'sqlite%' and name not like 'kysely%'",
    )
    .all() as { name: string; sql: string }[];
  const kept = tables.filter(({ name }) => !passing.includes(name));
  const kinds = { INTEGER: 'integer', TEXT: 'text', BLOB: 'bytes', ANY: 'value' } as Record<string, string>;
  const found: Record<string, Shape> = {};
  for (const { name } of kept) {
    const columns = db.pragma(`table_info(${name})`) as { name: string; type: string; pk: number }[];
    const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    found[name] = {
      key: key.map((column) => column.name),
      columns: sorted(columns.map((column) => [column.name, kinds[column.type] ?? column.type])),
    };
  }
  assert.deepEqual(found, listed);
  const numbered = kept.filter(({ sql }) => /autoincrement/.test(sql)).map(({ name }) => name);
  assert.deepEqual(numbered.sort(), numberedTables.toSorted());
  assertOrder(
    kept.flatMap(({ name }) =>
      (db.pragma(`foreign_key_list(${name})`) as { table: string }[]).map(({ table }) => ({
        from: name,
        to: table,
      })),
    ),
  );
});

test('the list has the tables of PostgreSQL', needsPostgres(), async (t) => {
  assert.ok(postgresBinaries().bin);
  const server = await postgresServer();
  const url = await server.createDatabase();
  const name = new URL(url).pathname.slice(1);
  const world = new TestWorld();
  await (await Database.connect(url, { world, directory: tempDir(t) })).close();
  const kinds = { bigint: 'integer', text: 'text', bytea: 'bytes', jsonb: 'value' } as Record<string, string>;
  const columns = await server.query<{ table: string; name: string; type: string; identity: string }>(
    `select table_name as table, column_name as name, data_type as type, is_identity as identity
     from information_schema.columns where table_schema = 'public' and table_name not like 'kysely%'`,
    [],
    name,
  );
  const keys = await server.query<{ table: string; name: string }>(
    `select k.table_name as table, k.column_name as name from information_schema.key_column_usage k
     join information_schema.table_constraints c using (constraint_schema, constraint_name)
     where c.constraint_type = 'PRIMARY KEY' and k.table_schema = 'public' order by k.ordinal_position`,
    [],
    name,
  );
  const found: Record<string, Shape> = {};
  for (const { table, name: column, type } of columns.filter(({ table }) => !passing.includes(table))) {
    const shape = found[table] ?? {
      key: keys.filter((key) => key.table === table).map((key) => key.name),
      columns: [],
    };
    found[table] = { ...shape, columns: sorted([...shape.columns, [column, kinds[type] ?? type]]) };
  }
  assert.deepEqual(found, listed);
  const numbered = columns.filter(({ identity }) => identity === 'YES').map(({ table }) => table);
  assert.deepEqual(numbered.sort(), numberedTables.toSorted());
  assertOrder(
    await server.query(
      `select cast(conrelid as regclass)::text as from, cast(confrelid as regclass)::text as to
       from pg_constraint where contype = 'f'`,
      [],
      name,
    ),
  );
});

test('every sealed column is in the list', () => {
  const columns = keptTables.flatMap(([table, shape]) =>
    [...shape.columns.keys()]
      .filter((column) => column.startsWith('sealed_'))
      .map((column) => `${table}.${column}`),
  );
  assert.deepEqual(columns.sort(), Object.keys(sealedPlaces).sort());
});
