/** The words of products in errors: short, on one line, and without secrets wherever they are cut. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shown } from '../../src/targets/target-http.ts';

const secret = Array.from({ length: 60 }, (_, index) => `${index}~`).join('');

test('no part of a secret is shown, wherever a long text is cut', () => {
  for (let offset = 0; offset <= secret.length; offset += 1) {
    const words = shown(`${'x'.repeat(offset)} ${`${secret} `.repeat(40)}`, [secret]) ?? '';
    assert.match(words, /^[x ]*(?:\[secret\] ?)+(?:\[\w*)?…?$/);
  }
});

test('the words of a product are one short line', () => {
  assert.equal(shown('first\r\nsecond\u001b[31m', []), 'first second [31m');
  assert.equal(shown('x'.repeat(10_000), []), `${'x'.repeat(300)}…`);
  for (const words of ['', ' \n ']) assert.equal(shown(words, []), undefined);
});
