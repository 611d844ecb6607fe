/** The end of a text without its last characters. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutTrailing } from '../../src/base/trailing.ts';

test('withoutTrailing removes only the repeated character at the end of a text', () => {
  const cases: readonly (readonly [text: string, left: string])[] = [
    ['https://dns.test//', 'https://dns.test'],
    ['https://dns.test', 'https://dns.test'],
    ['/a/b/', '/a/b'],
    ['///', ''],
    ['', ''],
    [`${'/'.repeat(100_000)}a`, `${'/'.repeat(100_000)}a`],
  ];
  for (const [text, left] of cases) assert.equal(withoutTrailing(text, '/'), left);
});
