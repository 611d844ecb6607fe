/** Short texts that were cut from long ones and are kept: the long ones must not stay in memory with them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { detached } from '../../src/base/detached.ts';

test('a detached text is equal and does not keep its source text in memory', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const bytes = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = bytes();
  const cut = (at: number) => `${String(at).padStart(20, '0')}${'x'.repeat(10_000)}`.slice(0, 20);
  const kept = Array.from({ length: 1000 }, (_, at) => detached(cut(at)));
  const grown = bytes() - before;
  assert.equal(kept[7], cut(7));
  assert.ok(grown < 2_000_000, `${grown} bytes for a thousand short texts`);
});
