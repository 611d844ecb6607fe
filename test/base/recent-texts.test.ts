/** A map of texts: what it says of a text was put under just that text, also where two are told apart by nothing but a look. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { RecentTexts } from '../../src/base/recent-texts.ts';

test('what was put last under a text is there, and what was put in longest ago is forgotten', () => {
  const texts = new RecentTexts<number>(2);
  for (const [index, text] of ['/a', '/ключ', '/a', '/c'].entries()) texts.set(text, index);
  assert.deepEqual(
    ['/a', '/ключ', '/c', '/d', ''].map((text) => texts.get(text)),
    [2, undefined, 3, undefined, undefined],
  );
});

test('of two texts with the same number the last one is remembered, and neither is taken for the other', () => {
  const texts = new RecentTexts<string>(10);
  texts.set('Aa', 'first');
  assert.equal(texts.get('BB'), undefined);
  texts.set('BB', 'second');
  assert.deepEqual([texts.get('Aa'), texts.get('BB')], [undefined, 'second']);
});

test('whatever is put in, nothing is told of a text but what was put under it', () => {
  // Of such letters many texts have the same number.
  const text = fc.string({ unit: fc.constantFrom('A', 'B', 'a', 'C', '#'), maxLength: 6 });
  const property = fc.property(fc.array(fc.tuple(text, fc.integer()), { maxLength: 200 }), (puts) => {
    const texts = new RecentTexts<number>(50);
    const model = new Map<string, number>();
    for (const [put, value] of puts) {
      texts.set(put, value);
      model.set(put, value);
      assert.equal(texts.get(put), value);
      for (const [other, expected] of model) assert.ok([expected, undefined].includes(texts.get(other)));
    }
  });
  fc.assert(property, { numRuns: 200 });
});

test('a text that was cut from a longer one does not keep that', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const texts = new RecentTexts<true>(1000);
  const bytes = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = bytes();
  for (let put = 0; put < 1000; put += 1) {
    texts.set(`${String(put).padStart(20, '0')}${'x'.repeat(10_000)}`.slice(0, 20), true);
  }
  const grown = bytes() - before;
  assert.equal(texts.get('7'.padStart(20, '0')), true);
  assert.ok(grown < 2_000_000, `${grown} bytes for a thousand short texts`);
});
