/** The table of single requests (bench/round-trips.ts). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tripsTable } from '../../bench/round-trips.ts';

test('tripsTable reports added latency as the difference to the first vault in the same round', () => {
  const round = (sqlite: number[], postgres: number[]) =>
    new Map([
      ['SQLite', sqlite],
      ['PostgreSQL', postgres],
    ]);
  // The machine was slow in the second round.
  const rounds = [
    round([1, 2, 30], [2.25, 2, 2.5]),
    round([11, 10, 12], [11.5, 11.5, 12]),
    round([2], [2.75]),
  ];
  assert.deepEqual(tripsTable(rounds).rows, [
    ['SQLite', 2, '', ''],
    ['PostgreSQL', 2.75, 0.5, '< 0.5'],
  ]);
});
