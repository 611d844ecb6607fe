/** Hashing in turn: a few at once, a few waiting, and no more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import { Secret } from '../../../src/base/secret.ts';
import { Passwords } from '../../../src/domain/access/passwords.ts';
import { cheapHash, goodPassword } from '../../harness/http/sign-in-fixtures.ts';
import { TestWorld } from '../../harness/test-world.ts';

const passwords = () => new Passwords(new TestWorld(), cheapHash);
const secret = new Secret(goodPassword);

test('hash requests beyond 2 running and 16 waiting are rejected with a retry time; the others finish', async () => {
  const hashing = passwords();
  const results = await Promise.allSettled(Array.from({ length: 30 }, () => hashing.hash(secret)));
  const refused = results.filter((result) => result.status === 'rejected');
  assert.equal(refused.length, 30 - 2 - 16);
  for (const { reason } of refused) {
    assert(reason instanceof Problem);
    assert.deepEqual([reason.code, reason.retryAfter], ['rate_limited', 5]);
  }
  assert.match(await hashing.hash(secret), /^\$argon2id/, 'and there is room again');
});

test('a failed comparison releases its slot', async () => {
  const hashing = passwords();
  for (let n = 0; n < 5; n += 1) await assert.rejects(hashing.matches(secret, 'damaged', 'known'));
  assert.match(await hashing.hash(secret), /^\$argon2id/);
});

test('a comparison without a hash returns false and takes a slot like any other', async () => {
  const hashing = passwords();
  assert.equal(await hashing.matches(secret, undefined, 'known'), false);
  const full = Array.from({ length: 18 }, () => hashing.hash(secret));
  await assert.rejects(hashing.matches(secret, undefined, 'known'), { code: 'rate_limited' });
  await Promise.all(full);
});

test('choose rejects a common password, and the error contains the field but not the password', async () => {
  await assert.rejects(passwords().choose('alice', new Secret('password1234'), 'new'), (error) => {
    assert(error instanceof Problem);
    assert.deepEqual([error.code, error.errors[0]?.path], ['invalid_request', 'new']);
    assert(!JSON.stringify(error.body).includes('password1234'));
    return true;
  });
});
