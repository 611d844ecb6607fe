/** Which statements are prepared: those that come again, up to a number. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StatementNames } from '../../../src/db/postgres/statement-names.ts';

test('a statement is prepared on its third use and keeps its name', () => {
  const names = new StatementNames();
  const given = Array.from({ length: 5 }, () => names.nameOf('select 1'));
  assert.deepEqual(given, [undefined, undefined, 's0', 's0', 's0']);
  for (let time = 0; time < 2; time += 1) assert.equal(names.nameOf('select 2'), undefined);
  assert.equal(names.nameOf('select 2'), 's1');
});

test('statements that are used once do not prevent another from being prepared', () => {
  const names = new StatementNames();
  for (let number = 0; number < 5000; number += 1) assert.equal(names.nameOf(`select ${number}`), undefined);
  for (let time = 0; time < 2; time += 1) names.nameOf('select');
  assert.equal(names.nameOf('select'), 's0');
});

test('a session prepares at most 300 statements', () => {
  const names = new StatementNames();
  const given = new Set<string | undefined>();
  for (let number = 0; number < 400; number += 1) {
    for (let time = 0; time < 3; time += 1) given.add(names.nameOf(`select ${number}`));
  }
  given.delete(undefined);
  assert.equal(given.size, 300);
  assert.equal(names.nameOf('select 399'), undefined);
  assert.equal(names.nameOf('select 0'), 's0');
});

test('a statement that returns all columns of a table is not prepared', () => {
  const third = (sql: string) => {
    const names = new StatementNames();
    return [1, 2, 3].map(() => names.nameOf(sql)).at(-1);
  };
  const all = [
    'select * from "sessions"',
    'select "sessions".* from "sessions"',
    'select "id", "sessions".* from "sessions"',
    'select "id", * from "sessions"',
    'insert into "sessions" ("id") values ($1) returning *',
    'SELECT * FROM sessions',
  ];
  for (const sql of all) assert.equal(third(sql), undefined, sql);
  const some = [
    'select count(*) as "all" from "sessions"',
    'select "a" * 2 from "t"',
    'select "a"*2 from "t"',
  ];
  for (const sql of some) assert.equal(third(sql), 's0', sql);
});
