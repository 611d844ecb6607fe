/** The tables that compare two executables (bench/figure.ts). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compared, figureTable, markdownOf } from '../../bench/figure.ts';

test('a comparison has the row of the other executable and the ratio below each row', () => {
  const head = ['request', 'vault /s', 'to reach', 'to stay'];
  const table = { title: 'Requests', head, rows: [['full chain', 30_000, 0.48, '< 2']] };
  const other = { title: 'Requests', head, rows: [['full chain', 20_000, 0.48, '< 2']] };
  const [both] = compared([table], [other]);
  assert.deepEqual(both?.rows, [
    ['full chain', 30_000, 0.48, '< 2'],
    ['full chain, other', 20_000, 0.48, '< 2'],
    ['full chain, ratio', 1.5, '', ''],
  ]);
  assert.match(markdownOf(both as NonNullable<typeof both>), /\n\| --- \| ---: \| ---: \| --- \|\n/);
});

test('figures with a unit are compared by their number', () => {
  const start = (value: number) => figureTable('Start', [{ name: 'vault --version', value, unit: 'ms' }]);
  const [both] = compared([start(90)], [start(60)]);
  const lines = markdownOf(both as NonNullable<typeof both>).split('\n');
  assert.deepEqual(lines.slice(-3), [
    '| vault --version | 90.0 ms |',
    '| vault --version, other | 60.0 ms |',
    '| vault --version, ratio | 1.50 |',
  ]);
});
