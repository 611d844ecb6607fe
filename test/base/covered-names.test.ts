/** Which names another certificate does not cover. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uncoveredNames } from '../../src/base/covered-names.ts';

const cases: [names: string[], by: string[], uncovered: string[]][] = [
  [['www.example.com'], ['WWW.Example.com'], []],
  [['www.example.com', 'example.com'], ['*.example.com'], ['example.com']],
  [['a.b.example.com'], ['*.example.com'], ['a.b.example.com']],
  [['*.example.com'], ['www.example.com'], ['*.example.com']],
  [['*.example.com'], ['*.example.com'], []],
  [['*.b.example.com'], ['*.example.com'], ['*.b.example.com']],
  [['192.0.2.7', '2001:db8::7'], ['192.0.2.7'], ['2001:db8::7']],
  [['z.example', 'a.example'], [], ['z.example', 'a.example']],
  [[], ['a.example'], []],
];

for (const [names, by, uncovered] of cases) {
  test(`of ${names.join(', ') || 'nothing'}, ${by.join(', ') || 'nothing'} leaves ${uncovered.join(', ') || 'nothing'}`, () => {
    assert.deepEqual(uncoveredNames(names, by), uncovered);
  });
}
