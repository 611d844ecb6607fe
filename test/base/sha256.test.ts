/** SHA-256 as the standard and Node's other interface have it. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { sha256 } from '../../src/base/sha256.ts';

test('has the values of the standard', () => {
  const values = {
    '': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    abc: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  };
  for (const [text, hex] of Object.entries(values)) assert.equal(sha256(text).toString('hex'), hex);
});

test('is that of the bytes in UTF-8, for any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      assert.deepEqual(sha256(text), createHash('sha256').update(text).digest());
    }),
  );
});

test('keeps its bytes when others are created', () => {
  const first = sha256('abc');
  const before = first.toString('hex');
  for (let index = 0; index < 10_000; index += 1) sha256(String(index));
  assert.equal(first.toString('hex'), before);
});
