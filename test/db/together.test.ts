/** Queries that are sent together end before their transaction does, also where one fails. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { together } from '../../src/db/together.ts';

test('the results come in order', async () => {
  assert.deepEqual(await together([Promise.resolve(1), Promise.resolve('two')]), [1, 'two']);
});

test('a failure is reported only after the others have ended', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const ended: string[] = [];
  const failing = Promise.reject(new Error('first'));
  const waiting = together([failing, promise.then(() => ended.push('other'))]);
  const outcome = assert.rejects(waiting, /first/).then(() => ended.push('failure'));
  resolve();
  await outcome;
  assert.deepEqual(ended, ['other', 'failure']);
});
