/** Errors of the operating system lose Node's code, system call and path. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { systemErrorText } from '../../../src/cli/terminal/system-error.ts';

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was thrown');
}

test('errors of Node become plain words', () => {
  assert.equal(systemErrorText(thrownBy(() => readFileSync('/nonexistent/x'))), 'no such file or directory');
  assert.equal(systemErrorText(thrownBy(() => readFileSync('/'))), 'is a directory');
  assert.equal(systemErrorText(thrownBy(() => readdirSync('/dev/null'))), 'not a directory');
});

test('a quota has no name in Node, only a number', () => {
  const code = 'Unknown system error -122';
  const error = Object.assign(new Error(`${code}: ${code}, write`), { code });
  assert.equal(systemErrorText(error), 'disk quota exceeded');
});

test('other errors keep their message', () => {
  assert.equal(systemErrorText(new Error('is a directory')), 'is a directory');
  const odd = Object.assign(new Error('toString: odd'), { code: 'toString' });
  assert.equal(systemErrorText(odd), 'toString: odd');
});
