/** Raw API keys: their form, and that only the value itself matches what is kept of it. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { createToken, readToken, tokenMatches } from '../../../src/crypto/secrets/api-key-token.ts';
import { TestWorld } from '../../harness/test-world.ts';

const world = new TestWorld();

test('a raw API key is a public prefix of 12 characters and a secret of 43 characters', () => {
  const { prefix, raw } = createToken(world);
  assert.match(raw.expose(), /^vk_[A-Za-z0-9_-]{12}\.[A-Za-z0-9_-]{43}$/);
  assert.equal(raw.expose().slice(0, 15), prefix);
});

test('prefix and secret encode 9 and 32 random bytes', () => {
  const asked: number[] = [];
  const randomBytes = (size: number) => {
    asked.push(size);
    return Buffer.alloc(size, asked.length);
  };
  const { raw } = createToken({ ...world, randomBytes });
  assert.deepEqual(asked, [9, 32]);
  const [prefix, secret] = raw.expose().slice(3).split('.');
  assert.deepEqual(Buffer.from(prefix ?? '', 'base64url'), Buffer.alloc(9, 1));
  assert.deepEqual(Buffer.from(secret ?? '', 'base64url'), Buffer.alloc(32, 2));
});

test('a thousand keys have a thousand different prefixes and secrets', () => {
  const tokens = Array.from({ length: 1000 }, () => createToken(world));
  assert.equal(new Set(tokens.map(({ prefix }) => prefix)).size, 1000);
  assert.equal(new Set(tokens.map(({ raw }) => raw.expose().slice(16))).size, 1000);
});

test('the stored hash is the SHA-256 of the whole raw API key', () => {
  const { hash, raw } = createToken(world);
  assert.deepEqual(hash, createHash('sha256').update(raw.expose()).digest());
});

test('JSON and inspect output of a new token do not contain its secret', () => {
  const token = createToken(world);
  const secret = token.raw.expose().slice(16);
  assert.equal(JSON.stringify(token).includes(secret), false);
  assert.equal(inspect(token, { depth: null }).includes(secret), false);
});

test('readToken returns the prefix and hash that the API key was created with', () => {
  const { prefix, hash, raw } = createToken(world);
  assert.deepEqual(readToken(raw.expose()), { prefix, hash });
});

const sample = `vk_${'a'.repeat(12)}.${'b'.repeat(43)}`;
const malformed: Record<string, string> = {
  'an empty string': '',
  'a prefix alone': sample.slice(0, 15),
  'a secret that is one character too short': sample.slice(0, -1),
  'a secret that is one character too long': `${sample}b`,
  'a prefix other than vk_': sample.replace('vk_', 'VK_'),
  'a text without the dot': sample.replace('.', '_'),
  'a character outside base64url': sample.replace('.b', '.+'),
  'a leading space': ` ${sample}`,
  'a trailing newline': `${sample}\n`,
  'a leading Bearer': `Bearer ${sample}`,
};

for (const [what, raw] of Object.entries(malformed)) {
  test(`readToken returns undefined for ${what}`, () => {
    assert.notEqual(readToken(sample), undefined);
    assert.equal(readToken(raw), undefined);
  });
}

test('tokenMatches returns true only for the stored hash of the token', () => {
  const token = createToken(world);
  const flipped = Buffer.from(token.hash);
  flipped[31] = (flipped[31] ?? 0) ^ 1;
  const cases: readonly (readonly [kept: Buffer | undefined, matches: boolean])[] = [
    [token.hash, true],
    [Buffer.from(token.hash), true],
    [flipped, false],
    [createToken(world).hash, false],
    [Buffer.alloc(32), false],
    [undefined, false],
  ];
  for (const [kept, matches] of cases) assert.equal(tokenMatches(token, kept), matches);
});

test('tokenMatches returns false for an unknown key and a token hash of zeros', () => {
  assert.equal(tokenMatches({ prefix: 'vk_', hash: Buffer.alloc(32) }, undefined), false);
});
