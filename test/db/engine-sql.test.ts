/** Expressions that each engine writes in its own SQL: their texts, and what SQLite answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Expression, sql } from 'kysely';
import {
  assignedIds,
  containsText,
  jsonPairs,
  numbersIn,
  smallerOf,
  steadyValue,
  withoutIndex,
} from '../../src/db/engine-sql.ts';
import { PostgresCompiler } from '../../src/db/postgres/postgres-compiler.ts';
import { SqliteCompiler } from '../../src/db/sqlite/sqlite-dialect.ts';
import { makeDatabase } from '../harness/database/database-maker.ts';

const texts: Record<string, readonly [expression: Expression<unknown>, sqlite: string, second: string]> = {
  'a steady value': [steadyValue(7), '+?', '$1'],
  'a column without its index': [withoutIndex('renewals.id'), '+"renewals"."id"', '"renewals"."id"'],
  'a substring search': [
    containsText(sql`lower(name)`, 'a'),
    '(instr(lower(name), ?) > 0)',
    '(strpos(lower(name), $1) > 0)',
  ],
  'the smaller number': [smallerOf(sql`a / 4.0`, sql.lit(9)), 'min(a / 4.0, 9)', 'least(a / 4.0, 9)'],
};

for (const [what, [expression, sqlite, second]] of Object.entries(texts)) {
  test(`${what} is written in the SQL of each engine`, () => {
    const node = sql`${expression}`.toOperationNode();
    const text = (compiler: SqliteCompiler | PostgresCompiler) =>
      compiler.compileQuery(node, { queryId: '' }).sql;
    assert.equal(text(new SqliteCompiler()), sqlite);
    assert.equal(text(new PostgresCompiler()), second);
  });
}

const answers: Record<string, readonly [expression: Expression<unknown>, answer: unknown]> = {
  'containsText matches a substring of the same case': [containsText(sql`'a%b'`, '%'), 1],
  'containsText does not match a substring of another case': [containsText(sql`'abc'`, 'B'), 0],
  'smallerOf returns the first number if it is smaller': [smallerOf(sql.lit(1), sql.lit(2)), 1],
  'smallerOf returns the second number if it is smaller': [smallerOf(sql.lit(2), sql.lit(1)), 1],
  'numbersIn matches a listed number': [sql`2 in ${numbersIn([1, 2])}`, 1],
  'an empty numbersIn matches no number': [sql`2 in ${numbersIn([])}`, 0],
  'jsonPairs returns JSON': [
    sql`(select ${jsonPairs('s.id', 's.name')} from (values (1, '"')) as t
      join (select 1 as id, 'a"' as name) as s on true)`,
    '[[1,"a\\""]]',
  ],
  'jsonPairs returns an empty array for no rows': [
    sql`(select ${jsonPairs('s.id', 's.name')} from (select 1 as id, 'a' as name) as s where false)`,
    '[]',
  ],
  'assignedIds is empty if no ID was assigned': [sql`(select count(*) from ${assignedIds()} as ids)`, 0],
};

for (const [what, [expression, answer]] of Object.entries(answers)) {
  test(`${what} in the tested engine`, async (t) => {
    const { db } = await makeDatabase(t);
    const { rows } = await sql<{ answer: unknown }>`select ${expression} as answer`.execute(db.reader);
    // Engines write JSON with and without spaces.
    const isJson = typeof answer === 'string';
    assert.deepEqual(isJson ? rows.map((row) => JSON.parse(String(row.answer))) : rows, [
      isJson ? JSON.parse(answer) : { answer },
    ]);
  });
}
