/** Queries whose text is made once: what stands in it, and what is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CompiledQuery, sql } from 'kysely';
import { compiledQuery } from '../../src/db/compiled-query.ts';
import type { Reader } from '../../src/db/database.ts';

function recorder() {
  const asked: CompiledQuery[] = [];
  const reader = {
    executeQuery: async (query: CompiledQuery) => {
      asked.push(query);
      return { rows: [] };
    },
  } as unknown as Reader;
  return { reader, asked };
}

test('each value stands as +?, for which SQLite does not prepare again', async () => {
  const { reader, asked } = recorder();
  const version = compiledQuery((db, id: number, number: number) =>
    db
      .selectFrom('certificate_versions')
      .select('serial')
      .where('certificate_id', '=', id)
      .where('version', '=', number),
  );
  await version(reader, 7, 1);
  await version(reader, 8, 2);
  const text = 'select "serial" from "certificate_versions" where "certificate_id" = +? and "version" = +?';
  assert.deepEqual(
    asked.map(({ sql, parameters }) => [sql, parameters]),
    [
      [text, [7, 1]],
      [text, [8, 2]],
    ],
  );
});

test('a query with other values than its arguments, or in another order, is refused', async () => {
  const { reader } = recorder();
  const swapped = compiledQuery((db, a: string, b: string) =>
    db.selectFrom('certificates').select('id').where('key_type', '=', b).where('name', '=', a),
  );
  await assert.rejects(swapped(reader, 'a', 'b'), /the values of this query are not its arguments/);
});

test('a question mark that is no value is refused', async () => {
  const { reader } = recorder();
  const asking = compiledQuery((db, name: string) =>
    db.selectFrom('certificates').select(sql<string>`'why?'`.as('why')).where('name', '=', name),
  );
  await assert.rejects(asking(reader, 'a'), /another \? than its values/);
});
