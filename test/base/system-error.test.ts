/** Errors of the operating system are described in plain words. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { describeSystemError } from '../../src/base/system-error.ts';

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was thrown');
}

test('errors of Node are described without their code, system call and path', () => {
  assert.equal(
    describeSystemError(thrownBy(() => readFileSync('/no/such/file'))),
    'no such file or directory',
  );
  assert.equal(describeSystemError(thrownBy(() => readFileSync('/'))), 'is a directory');
});

test('an exceeded disk quota, which Node has no words for, is described', () => {
  for (const code of ['EDQUOT', 'Unknown system error -122', 'Unknown system error -69']) {
    assert.equal(describeSystemError(Object.assign(new Error(code), { code })), 'disk quota exceeded');
  }
});

test('an unknown error keeps its message', () => {
  assert.equal(describeSystemError(Object.assign(new Error('odd'), { code: 'EODD' })), 'odd');
  assert.equal(describeSystemError(new Error('plain')), 'plain');
  assert.equal(describeSystemError('text'), 'text');
});
