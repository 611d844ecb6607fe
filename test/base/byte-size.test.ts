/** Sizes as people write them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatByteSize, parseByteSize } from '../../src/base/byte-size.ts';

test('parseByteSize accepts only whole numbers of MB, GB or TB', () => {
  assert.deepEqual(['1MB', '500 MB', '2gb', '1TB'].map(parseByteSize), [1e6, 5e8, 2e9, 1e12]);
  for (const text of ['', '0MB', '1', '1.5GB', '-1GB', '1KB', '1e9', '1234567MB', 'GB', '1GB ']) {
    assert.equal(parseByteSize(text), undefined, text);
  }
});

test('a size is shown in the unit that fits', () => {
  assert.deepEqual([0, 999_999, 64e6, 1e9, 1.54e9, 2e12].map(formatByteSize), [
    '0 MB',
    '0 MB',
    '64 MB',
    '1.0 GB',
    '1.5 GB',
    '2.0 TB',
  ]);
});
