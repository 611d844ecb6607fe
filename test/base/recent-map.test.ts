/** A map with a limit: what was put into it last stays. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { RecentMap } from '../../src/base/recent-map.ts';

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

test('whatever is put in, put in again and deleted, the last ones are there', () => {
  const operation = fc.record({ key: fc.integer({ min: 0, max: 12 }), deletes: fc.boolean() });
  const property = fc.property(
    fc.integer({ min: 1, max: 6 }),
    fc.array(operation, { maxLength: 300 }),
    (most, operations) => {
      const map = new RecentMap<number, number>(most);
      let model: number[] = [];
      for (const { key, deletes } of operations) {
        model = model.filter((other) => other !== key);
        if (deletes) map.delete(key);
        else {
          map.set(key, key);
          model = [...model, key].slice(-most);
        }
        assert.equal(map.size, model.length);
        for (let other = 0; other <= 12; other += 1) {
          assert.equal(map.get(other), model.includes(other) ? other : undefined);
        }
      }
    },
  );
  fc.assert(property, { numRuns: 300 });
});

test('what is put and put again takes no memory', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  for (const few of [1, 3, 500]) {
    const map = new RecentMap<number, number>(1000);
    const bytes = () => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    for (let put = 0; put < few; put += 1) map.set(put, put);
    const before = bytes();
    for (let put = 0; put < 300_000; put += 1) map.set(put % few, put);
    const grown = bytes() - before;
    assert(grown < 500_000, `${grown} bytes more for ${few} that are put again and again`);
    assert.equal(map.size, few);
  }
});
