/** Values of PostgreSQL are those that SQLite returns: numbers, bytes and text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postgresTypes } from '../../../src/db/postgres/postgres-types.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { testPool } from '../../harness/postgres/pool.ts';
import { postgresServer } from '../../harness/postgres/postgres.ts';

test('numbers, sums, bytes and text are returned as SQLite returns them', needsPostgres(), async (t) => {
  const server = await postgresServer();
  const pool = testPool(t, await server.createDatabase());
  const { rows } = await pool.read(
    `select 9007199254740991::bigint as big, 1::int as int, 2::smallint as small, count(*) as count,
       sum(n) as sum, sum(n / 2.0) as half, 0.5::float8 as real, true as yes, $1::bytea as bytes, 'é' as text,
       null::bigint as none, '{"a":[1]}'::json as json
     from unnest(array[1, 2]::bigint[]) n`,
    [Buffer.from([0, 255])],
  );
  assert.deepEqual(rows, [
    {
      ...{
        big: Number.MAX_SAFE_INTEGER,
        int: 1,
        small: 2,
        count: 2,
        sum: 3,
        half: 1.5,
        real: 0.5,
        yes: 1,
      },
      ...{ bytes: Buffer.from([0, 255]), text: 'é', none: null, json: '{"a":[1]}' },
    },
  ]);
});

test(
  'a bigint beyond the safe range rejects the query and keeps the connection usable',
  needsPostgres(),
  async (t) => {
    const server = await postgresServer();
    const pool = testPool(t, await server.createDatabase());
    await assert.rejects(pool.read('select 9007199254740993::bigint'), RangeError);
    // The connection is still in step.
    assert.deepEqual((await pool.read('select 1 as one')).rows, [{ one: 1 }]);
  },
);

test('the type parser for binary values throws', () => {
  assert.throws(() => postgresTypes.getTypeParser(20, 'binary'), /as text/);
});
