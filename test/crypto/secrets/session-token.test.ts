/** Session tokens: only what this vault signed, in its one way, and only while it lasts. */
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { test } from 'node:test';
import jwt from 'jsonwebtoken';
import { Secret } from '../../../src/base/secret.ts';
import { MasterKey } from '../../../src/crypto/secrets/master-key.ts';
import {
  createSetupToken,
  isBearerSession,
  readSessionToken,
  sessionTokenCreator,
  setupTokenMatches,
} from '../../../src/crypto/secrets/session-token.ts';
import { TestWorld } from '../../harness/test-world.ts';

const world = new TestWorld();
const key = new MasterKey(new Secret(Buffer.alloc(32, 7)));
const signing = key.derive('sign: session');
const createdAt = world.now();
const expiresAt = createdAt + 60_000;
const createSessionToken = await sessionTokenCreator();
const { token, idHash } = createSessionToken(world, key, { createdAt, expiresAt });
const raw = token.expose();
const [header = '', payload = '', signature = ''] = raw.split('.');

const base64 = (text: string) => Buffer.from(text).toString('base64url');
const claims = () => JSON.parse(Buffer.from(payload, 'base64url').toString());
const signed = (head: string, body: string) =>
  `${head}.${body}.${createHmac('sha256', signing.export()).update(`${head}.${body}`).digest('base64url')}`;

test('readSessionToken returns the hash of the token ID, and the token has only the expected claims', async () => {
  assert.deepEqual(await readSessionToken([key], raw, createdAt), idHash);
  const { jti, iat, exp, ...rest } = claims();
  assert.match(jti, /^[\w-]{43}$/);
  assert.deepEqual(idHash, createHash('sha256').update(jti).digest());
  assert.deepEqual([iat, exp], [createdAt / 1000, expiresAt / 1000]);
  assert.deepEqual(rest, { iss: 'certificate-vault' });
  assert.equal(String(token), '[secret]');
});

test('the token of a program does not work as a cookie, and that of a cookie not as bearer token', async () => {
  const bearer = createSessionToken(world, key, { createdAt, expiresAt }, 'bearer');
  const text = bearer.token.expose();
  assert.match(text, /^vs_[\w-]+\.[\w-]+\.[\w-]+$/);
  assert.deepEqual([isBearerSession(text), isBearerSession(raw)], [true, false]);
  assert.deepEqual(await readSessionToken([key], text, createdAt, 'bearer'), bearer.idHash);
  for (const forged of [text, text.slice(3), `vs_${text}`]) {
    assert.equal(await readSessionToken([key], forged, createdAt), undefined);
  }
  for (const forged of [raw, `vs_${raw}`, text.slice(3)]) {
    assert.equal(await readSessionToken([key], forged, createdAt, 'bearer'), undefined);
  }
});

test('two tokens have different IDs', async () => {
  const other = createSessionToken(world, key, { createdAt, expiresAt });
  assert.notDeepEqual(other.idHash, idHash);
});

test('a token expires exactly at expiresAt', async () => {
  assert.deepEqual(await readSessionToken([key], raw, expiresAt - 1), idHash);
  assert.equal(await readSessionToken([key], raw, expiresAt), undefined);
});

const none = base64(JSON.stringify({ alg: 'none', typ: 'JWT' }));
const refused: Readonly<Record<string, string>> = {
  'an empty string': '',
  'text that is not a token': 'garbage',
  'only dots': '..',
  'a token without a signature': `${header}.${payload}.`,
  'the algorithm none': `${none}.${payload}.`,
  'the algorithm none with a signature': `${none}.${payload}.${signature}`,
  'another HMAC algorithm with the right key': jwt.sign(claims(), signing, { algorithm: 'HS512' }),
  'a signature by the key of another vault': jwt.sign(claims(), Buffer.alloc(32, 8)),
  'a signature by the master key itself': jwt.sign(claims(), Buffer.alloc(32, 7)),
  'a signature by a key for another purpose': jwt.sign(claims(), key.derive('entity tag')),
  'a changed payload': `${header}.${base64(JSON.stringify({ ...claims(), exp: 9e9 }))}.${signature}`,
  'a truncated signature': raw.slice(0, -1),
  'another issuer': jwt.sign({ ...claims(), iss: 'another-issuer' }, signing),
  'a token without an ID': signed(header, base64(JSON.stringify({ ...claims(), jti: undefined }))),
  'a token without an expiry': signed(header, base64(JSON.stringify({ ...claims(), exp: undefined }))),
  'an ID that is not a string': signed(header, base64(JSON.stringify({ ...claims(), jti: 7 }))),
  'signed text that is not JSON': signed(header, base64('{')),
  'signed JSON that is not an object': signed(header, base64('"text"')),
  'a token with too many characters': jwt.sign({ ...claims(), padding: 'x'.repeat(1000) }, signing),
};

for (const [what, text] of Object.entries(refused)) {
  test(`readSessionToken rejects ${what}`, async () => {
    assert.equal(await readSessionToken([key], text, createdAt), undefined);
  });
}

test('setupTokenMatches accepts only the token whose hash is stored', () => {
  const setup = createSetupToken(world);
  assert.match(setup.token.expose(), /^[\w-]{43}$/);
  assert.equal(setup.idHash.length, 32);
  assert.equal(setupTokenMatches(setup.token, setup.idHash), true);
  assert.equal(setupTokenMatches(createSetupToken(world).token, setup.idHash), false);
  assert.equal(setupTokenMatches(new Secret(''), setup.idHash), false);
  assert.equal(setupTokenMatches(new Secret(''), Buffer.alloc(0)), false);
});
