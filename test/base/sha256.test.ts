/** SHA-256 as the standard and Node's other interface have it. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { sha256 } from '../../src/base/sha256.ts';

test('sha256 returns the digests of the standard', () => {
  const values = {
    '': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    abc: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  };
  for (const [text, hex] of Object.entries(values)) assert.equal(sha256(text).toString('hex'), hex);
});

test('sha256 of any text equals the createHash digest of its UTF-8 bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      assert.deepEqual(sha256(text), createHash('sha256').update(text).digest());
    }),
  );
});

test('a sha256 digest keeps its bytes when further digests are created', () => {
  const first = sha256('abc');
  const before = first.toString('hex');
  for (let index = 0; index < 10_000; index += 1) sha256(String(index));
  assert.equal(first.toString('hex'), before);
});
