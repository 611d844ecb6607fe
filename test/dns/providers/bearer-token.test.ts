/** How long access tokens are kept. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { bearerToken } from '../../../src/dns/providers/bearer-token.ts';
import { TestWorld } from '../../harness/test-world.ts';

const { signal } = new AbortController();

function counted() {
  const world = new TestWorld();
  let count = 0;
  const token = bearerToken(world, async () => {
    count += 1;
    return { token: `token-${count}`, lifetimeMs: 3600_000 };
  });
  return { world, token, use: async () => (await token.headers(signal)).Authorization };
}

test('a token is used until a minute before it expires', async () => {
  const { world, use } = counted();
  assert.equal(await use(), 'Bearer token-1');
  world.advance(3600_000 - 60_001);
  assert.equal(await use(), 'Bearer token-1');
  world.advance(1);
  assert.equal(await use(), 'Bearer token-2');
});

test('a forgotten token is replaced', async () => {
  const { token, use } = counted();
  await use();
  token.forget();
  assert.equal(await use(), 'Bearer token-2');
  assert.doesNotMatch(inspect(token, { depth: 9 }), /token-2/);
});

test('a failed token request is not cached', async () => {
  let isDown = true;
  const token = bearerToken(new TestWorld(), async () => {
    if (isDown) throw new Error('down');
    return { token: 'token', lifetimeMs: 3600_000 };
  });
  await assert.rejects(token.headers(signal), /down/);
  isDown = false;
  assert.deepEqual(await token.headers(signal), { Authorization: 'Bearer token' });
});
