/**
 * Password hashes: Argon2id with their parameters, permanently readable, and never a second's work for a tampered row.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import {
  dummyPasswordHash,
  hashCost,
  hashPassword,
  needsRehash,
  passwordMatches,
} from '../../../src/crypto/secrets/password-hash.ts';
import { cheapHash } from '../../harness/http/sign-in-fixtures.ts';
import { TestWorld } from '../../harness/test-world.ts';

const world = new TestWorld();
const secret = (text: string) => new Secret(text);

/** Frozen: rows depend on it. */
const frozen =
  '$argon2id$v=19$m=65536,t=3,p=4$HBjXGCNT4+iUBTsQ4y9/gQ$HJOdu79iqLuGaA3Zx2a+R1kzLmm//jEzJQ5x6UxxEeQ';

test('a hash consists of its parameters, a random salt and a tag', async () => {
  const [one, two] = await Promise.all([1, 2].map(() => hashPassword(world, secret('pass word'), cheapHash)));
  assert.match(one ?? '', /^\$argon2id\$v=19\$m=8,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  assert.notEqual(one, two);
});

test('the cost is the second recommended option of RFC 9106', () => {
  assert.deepEqual(hashCost, { memory: 65_536, passes: 3, parallelism: 4 });
  assert.match(dummyPasswordHash(world), /^\$argon2id\$v=19\$m=65536,t=3,p=4\$/);
});

test('a password matches its own hash, with any parameters, and no other', async () => {
  assert.equal(await passwordMatches(secret('pässword'), frozen), true);
  assert.equal(await passwordMatches(secret('passwort'), frozen), false);
  const cheap = await hashPassword(world, secret('pässword'), cheapHash);
  assert.equal(await passwordMatches(secret('pässword'), cheap), true);
  assert.equal(await passwordMatches(secret(''), cheap), false);
  assert.equal(await passwordMatches(secret('pässword '), cheap), false);
});

test('composed and decomposed Unicode forms of a password match the same hash', async () => {
  const hash = await hashPassword(world, secret('pa\u0308ssword'), cheapHash);
  assert.equal(await passwordMatches(secret('p\u00e4ssword'), hash), true);
});

test('a dummy hash has a random salt and a random tag, and an empty password does not match it', async () => {
  const dummies = [1, 2].map(() => dummyPasswordHash(world, cheapHash));
  const [one = [], two = []] = dummies.map((dummy) => dummy.split('$').slice(-2));
  assert(one.every((part, at) => part !== two[at]));
  assert.equal(await passwordMatches(secret(''), dummies[0] ?? ''), false);
});

test('needsRehash returns true when memory or passes are below the current cost', () => {
  assert.equal(needsRehash(frozen), false);
  assert.equal(needsRehash(frozen.replace('m=65536', 'm=65535')), true);
  assert.equal(needsRehash(frozen.replace('t=3', 't=2')), true);
  assert.equal(needsRehash(frozen.replace('t=3', 't=4')), false);
});

for (const [what, damaged] of Object.entries({
  empty: '',
  'another algorithm': frozen.replace('argon2id', 'argon2i'),
  'another version': frozen.replace('v=19', 'v=16'),
  'zero memory': frozen.replace('m=65536', 'm=0'),
  'too much memory': frozen.replace('m=65536', 'm=9999999'),
  'too many passes': frozen.replace('t=3', 't=99'),
  'zero lanes': frozen.replace('p=4', 'p=0'),
  'truncated tag': frozen.slice(0, -1),
  'trailing newline': `${frozen}\n`,
})) {
  test(`passwordMatches rejects a damaged hash: ${what}`, async () => {
    await assert.rejects(
      passwordMatches(secret('pässword'), damaged),
      /a password hash in the database is damaged/,
    );
  });
}
