/** TXT data in the form of zone files. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quoteTxt, unquoteTxt } from '../../../src/dns/resolver/txt-string.ts';

test('a value is quoted, with quotes and backslashes escaped', () => {
  assert.equal(quoteTxt('abc_-1'), '"abc_-1"');
  assert.equal(quoteTxt('a"b\\c'), '"a\\"b\\\\c"');
  assert.equal(quoteTxt(''), '""');
});

test('a value of more than 255 bytes becomes several strings', () => {
  assert.equal(quoteTxt('x'.repeat(256)), `"${'x'.repeat(255)}" "x"`);
});

test('a quoted value is parsed back', () => {
  for (const value of ['', 'abc', 'a"b\\c', 'a b; c=d', '"quoted"', `${'"\\'.repeat(300)}`]) {
    assert.equal(unquoteTxt(quoteTxt(value)), value);
  }
});

test('strings are joined, and escapes by number resolved', () => {
  assert.equal(unquoteTxt(' "ab" "c\\100\\"e" '), 'abcd"e');
});

test('text without quotes is returned unchanged', () => {
  assert.equal(unquoteTxt('abc\\100'), 'abc\\100');
});
