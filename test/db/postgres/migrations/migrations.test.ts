/**
 * The schema on a server is that of SQLite: the same tables, columns, keys, indexes and constraints, in two lines of
 * migrations.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely, sql } from 'kysely';
import { realWorld } from '../../../../src/base/world.ts';
import { Database } from '../../../../src/db/database.ts';
import { ConnectionPool } from '../../../../src/db/postgres/connection-pool.ts';
import { parseConnectionUrl } from '../../../../src/db/postgres/connection-url.ts';
import { migrate, migrations, refuseNewerSchema } from '../../../../src/db/postgres/migrations/migrations.ts';
import { postgresDialect } from '../../../../src/db/postgres/postgres-dialect.ts';
import { migrations as sqliteMigrations } from '../../../../src/db/sqlite/migrations.ts';
import { postgresServer } from '../../../harness/postgres/postgres.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

type Column = readonly [name: string, kind: string, nullable: boolean, fallback: string | null];
type Table = {
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** Columns or expressions, whether unique, and the condition of a partial index. */
  readonly indexes: readonly string[];
  readonly references: readonly string[];
  readonly checks: readonly string[];
};
type Tables = Readonly<Record<string, Table>>;

const kinds: Readonly<Record<string, string>> = {
  integer: 'number',
  bigint: 'number',
  text: 'text',
  blob: 'bytes',
  bytea: 'bytes',
  any: 'any',
  jsonb: 'any',
};

/** One spelling for what both engines say of an expression. */
function normal(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/::\w+(\[\])?/g, '')
    .replaceAll(/= any \(array\[([^\]]*)\]\)/g, 'in ($1)')
    .replaceAll('ifnull', 'coalesce')
    .replaceAll(/[\s()"]/g, '');
}

const sorted = (texts: readonly string[]) => [...texts].sort();

async function sqliteTables(path: string): Promise<Tables> {
  await (await Database.open(path, realWorld)).close();
  const db = new BetterSqlite3(path, { readonly: true });
  const all = <T>(text: string) => db.prepare(text).all() as T[];
  const names = all<{ name: string; sql: string }>(
    "select name, sql from sqlite_schema where type = 'table'",
  ).filter(({ name }) => !name.startsWith('sqlite_') && !name.startsWith('kysely_'));
  const tables = names.map(({ name, sql: text }) => {
    const columns = all<{
      name: string;
      type: string;
      notnull: number;
      dflt_value: string | null;
      pk: number;
    }>(`pragma table_info(${name})`);
    const indexes = all<{ name: string; unique: number; origin: string }>(`pragma index_list(${name})`)
      .filter(({ origin }) => origin !== 'pk')
      .map((index) => {
        const written = all<{ sql: string | null }>(
          `select sql from sqlite_schema where name = '${index.name}'`,
        )[0]?.sql;
        const [, on, where] = /\bon \w+\s*\(([\s\S]*?)\)\s*(?:where ([\s\S]*))?$/i.exec(written ?? '') ?? [];
        const own = all<{ name: string }>(`pragma index_info("${index.name}")`).map((column) => column.name);
        return indexText(index.unique === 1, on ?? own.join(','), where);
      });
    const references = all<{ table: string; from: string; to: string; on_delete: string }>(
      `pragma foreign_key_list(${name})`,
    );
    const checks = [...text.matchAll(/check \(((?:[^()]|\([^()]*\))*)\)/gi)].map(([, check = '']) =>
      normal(check),
    );
    const table: Table = {
      columns: columns.map(({ name: column, type, notnull, dflt_value, pk }) => [
        column,
        kinds[type.toLowerCase()] ?? type,
        notnull === 0 && pk === 0,
        dflt_value === null ? null : normal(dflt_value).replace("x''", "''"),
      ]),
      primaryKey: columns
        .filter(({ pk }) => pk > 0)
        .sort((a, b) => a.pk - b.pk)
        .map((column) => column.name),
      indexes: sorted(indexes),
      references: sorted(
        references.map(
          ({ table: other, from, to, on_delete }) => `${from} ${other}.${to} ${on_delete.toLowerCase()}`,
        ),
      ),
      checks: sorted(checks),
    };
    return [name, table] as const;
  });
  db.close();
  return Object.fromEntries(tables);
}

function indexText(isUnique: boolean, columns: string, where: string | undefined): string {
  return `${isUnique ? 'unique ' : ''}${normal(columns)}${where === undefined ? '' : ` where ${normal(where)}`}`;
}

async function serverTables(database: string): Promise<Tables> {
  const server = await postgresServer();
  const all = <T extends Record<string, unknown>>(text: string) => server.query<T>(text, [], database);
  const names = await all<{ name: string }>(
    "select table_name as name from information_schema.tables where table_schema = 'public' and table_name not like 'kysely%'",
  );
  const tables: [string, Table][] = [];
  for (const { name } of names) {
    const columns = await all<{
      column_name: string;
      data_type: string;
      is_nullable: string;
      column_default: string | null;
      collation_name: string | null;
    }>(
      `select column_name, data_type, is_nullable, column_default, collation_name from information_schema.columns
       where table_schema = 'public' and table_name = '${name}' order by ordinal_position`,
    );
    for (const column of columns) {
      if (column.data_type === 'text')
        assert.equal(column.collation_name, 'C', `${name}.${column.column_name}`);
    }
    const constraints = await all<{ type: string; definition: string; columns: string[] }>(
      `select contype as type, pg_get_constraintdef(oid) as definition, array(select attname::text from unnest(conkey) with ordinality as k (n, o)
         join pg_attribute on attrelid = conrelid and attnum = n order by o) as columns
       from pg_constraint where conrelid = '${name}'::regclass`,
    );
    const indexes = await all<{ definition: string; unique: boolean }>(
      `select pg_get_indexdef(indexrelid) as definition, indisunique as "unique" from pg_index where indrelid = '${name}'::regclass and not indisprimary`,
    );
    const references = constraints
      .filter(({ type }) => type === 'f')
      .map(({ definition, columns: [from] }) => {
        const [, other, to, then] = /REFERENCES (\w+)\((\w+)\)(?: ON DELETE (.*))?$/.exec(definition) ?? [];
        return `${from} ${other}.${to} ${(then ?? 'no action').toLowerCase()}`;
      });
    tables.push([
      name,
      {
        columns: columns.map(({ column_name, data_type, is_nullable, column_default }) => [
          column_name,
          kinds[data_type] ?? data_type,
          is_nullable === 'YES',
          column_default === null ? null : normal(column_default).replace('\\x', ''),
        ]),
        primaryKey: constraints.find(({ type }) => type === 'p')?.columns ?? [],
        indexes: sorted(
          indexes.map(({ definition, unique }) => {
            const [, on = '', where] = /USING btree \((.*?)\)(?: WHERE (.*))?$/.exec(definition) ?? [];
            return indexText(unique, on, where);
          }),
        ),
        references: sorted(references),
        checks: sorted(
          constraints
            .filter(({ type }) => type === 'c')
            .map(({ definition }) => normal(definition).replace(/^check/, '')),
        ),
      },
    ]);
  }
  return Object.fromEntries(tables);
}

test('both engines have the same tables, columns, keys, indexes and constraints', async (t) => {
  const server = await postgresServer();
  const url = await server.createDatabase();
  const db = await Database.connect(url, { world: realWorld, environment: {}, directory: tempDir(t) });
  await db.close();
  const there = await serverTables(new URL(url).pathname.slice(1));
  const here = await sqliteTables(join(tempDir(t), 'vault.db'));
  assert.deepEqual(Object.keys(there).sort(), Object.keys(here).sort());
  for (const [name, table] of Object.entries(here)) {
    // A name without regard to case: a collation there, an expression here.
    const names = name === 'administrators' ? { 'unique name': 'unique lowername' } : {};
    const indexes = table.indexes.map((index) => (names as Record<string, string>)[index] ?? index);
    assert.deepEqual(there[name], { ...table, indexes }, name);
  }
  assert(Object.keys(here).length >= 27);
});

test('the migrations of both engines end with the same names', () => {
  const names = Object.keys(migrations);
  assert.deepEqual(names, Object.keys(sqliteMigrations).slice(-names.length));
});

test('a migration that fails says why, and leaves the database as it was', async (t) => {
  const server = await postgresServer();
  const url = await server.createDatabase();
  const pool = new ConnectionPool({ url: parseConnectionUrl(url, { environment: {} }), world: realWorld });
  t.after(() => pool.close());
  const db = new Kysely<unknown>({ dialect: postgresDialect(pool, { kind: 'write' }) });
  const broken = {
    up: async (on: Kysely<unknown>) => void (await sql`create table a (b nonsense)`.execute(on)),
  };
  const fine = { up: async (on: Kysely<unknown>) => void (await sql`create table one (a int)`.execute(on)) };
  const migrating = db
    .transaction()
    .execute((transaction) => migrate(transaction, { '0001-fine': fine, '0002-broken': broken }));
  await assert.rejects(migrating, /type "nonsense" does not exist/);
  const left = await server.query(
    "select 1 from information_schema.tables where table_schema = 'public'",
    [],
    new URL(url).pathname.slice(1),
  );
  assert.deepEqual(left, []);
});

test('a schema of a newer vault is rejected', () => {
  refuseNewerSchema(Object.keys(migrations), 'postgres://db/vault');
  assert.throws(() => refuseNewerSchema([...Object.keys(migrations), '9999-later'], 'postgres://db/vault'), {
    message: 'postgres://db/vault was written by a newer vault (its schema has 9999-later)',
  });
});
