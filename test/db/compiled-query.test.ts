/** Queries whose text is made once per engine: what stands in it, and what is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CompiledQuery,
  DummyDriver,
  type Expression,
  Kysely,
  type QueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  sql,
} from 'kysely';
import { compiledQuery } from '../../src/db/compiled-query.ts';
import { PostgresCompiler } from '../../src/db/postgres/postgres-compiler.ts';
import type { Schema } from '../../src/db/schema/schema.ts';
import { SqliteCompiler } from '../../src/db/sqlite/sqlite-dialect.ts';

/** Records what it is asked, and answers nothing. */
class Recorder extends DummyDriver {
  readonly asked: CompiledQuery[] = [];

  override async acquireConnection() {
    const executeQuery = async (query: CompiledQuery) => {
      this.asked.push(query);
      return { rows: [] };
    };
    return { ...(await super.acquireConnection()), executeQuery };
  }
}

function recorded(compiler: QueryCompiler = new SqliteCompiler()) {
  const driver = new Recorder();
  const reader = new Kysely<Schema>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => driver,
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => compiler,
    },
  });
  return { reader, asked: driver.asked };
}

const serial = compiledQuery((db, id: Expression<number>, number: Expression<number>) =>
  db
    .selectFrom('certificate_versions')
    .select('serial')
    .where('certificate_id', '=', id)
    .where('version', '=', number),
);

test('SQLite queries use +? for each value and have the same text for other values', async () => {
  const { reader, asked } = recorded();
  await serial(reader, 7, 1);
  await serial(reader, 8, 2);
  const text = 'select "serial" from "certificate_versions" where "certificate_id" = +? and "version" = +?';
  assert.deepEqual(
    asked.map(({ sql, parameters }) => [sql, parameters]),
    [
      [text, [7, 1]],
      [text, [8, 2]],
    ],
  );
});

test('two engines in one process each get their own SQL text', async () => {
  const [one, other] = [recorded(), recorded(new PostgresCompiler())];
  await serial(one.reader, 7, 1);
  await serial(other.reader, 7, 1);
  await serial(one.reader, 8, 2);
  assert.match(one.asked[0]?.sql ?? '', /= \+\? and "version" = \+\?$/);
  assert.match(other.asked[0]?.sql ?? '', /= \$1 and "version" = \$2$/);
  assert.equal(one.asked[1]?.sql, one.asked[0]?.sql);
});

test('a transaction gets the text of its database, without compiling again', async () => {
  const compiler = new SqliteCompiler();
  const { reader, asked } = recorded(compiler);
  await serial(reader, 7, 1);
  compiler.compileQuery = () => assert.fail('it was compiled again');
  await reader.transaction().execute((writer) => serial(writer, 8, 2));
  assert.deepEqual(asked.at(-1)?.parameters, [8, 2]);
});

test('a query with values other than its arguments, or in another order, is rejected', async () => {
  const { reader } = recorded();
  const swapped = compiledQuery((db, a: Expression<string>, b: Expression<string>) =>
    db.selectFrom('certificates').select('id').where('key_type', '=', b).where('name', '=', a),
  );
  await assert.rejects(swapped(reader, 'a', 'b'), /the values of this query are not its arguments/);
  const more = compiledQuery((db, name: Expression<string>) =>
    db.selectFrom('certificates').select('id').where('name', '=', name).where('key_type', '=', 'p256'),
  );
  await assert.rejects(more(reader, 'a'), /the values of this query are not its arguments/);
});

test('a question mark in a string literal is not changed', async () => {
  const { reader, asked } = recorded();
  const asking = compiledQuery((db, name: Expression<string>) =>
    db.selectFrom('certificates').select(sql<string>`'why?'`.as('why')).where('name', '=', name),
  );
  await asking(reader, 'a');
  assert.equal(asked[0]?.sql, `select 'why?' as "why" from "certificates" where "name" = +?`);
});
