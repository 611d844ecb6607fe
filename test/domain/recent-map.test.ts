/** A map with a limit: what was put into it last stays. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentMap } from '../../src/domain/recent-map.ts';

test('what was put in longest ago is forgotten when there is too much', () => {
  const map = new RecentMap<string, number>(3);
  for (const [index, key] of ['a', 'b', 'c'].entries()) map.set(key, index);
  map.set('a', 9);
  map.set('d', 3);
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((key) => map.get(key)),
    [9, undefined, 2, 3],
  );
  map.delete('a');
  map.set('e', 4);
  assert.deepEqual([map.size, map.get('c'), map.get('a')], [3, 2, undefined]);
});
