/** What is sealed under a passphrase always opens, with that passphrase and for that purpose only. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { PassphraseKey, type PassphraseSealed } from '../../../src/crypto/secrets/passphrase-key.ts';
import {
  openUnderPassphrase,
  passphraseCost,
  sealUnderPassphrase,
} from '../../../src/crypto/secrets/passphrase-seal.ts';
import { cheapHash } from '../../harness/http/sign-in-fixtures.ts';
import { TestWorld } from '../../harness/test-world.ts';

const world = new TestWorld();
const passphrase = new Secret<string>('pässphrase of four words');
const context = 'certificate-vault v1 master key 22167d1c05b7bba4';
const plaintext = Buffer.from([...Array(32).keys()]);

/** Frozen: backups that lie in safes depend on it. */
const frozen: PassphraseSealed = {
  kdf: 'argon2id',
  memory: 262144,
  passes: 3,
  parallelism: 4,
  salt: 'rkExhTBmk6PFLLSnLeJy0w==',
  cipher: 'aes-256-gcm',
  nonce: 'gBtFe/CWEkkXmEqz',
  sealed: 's3PVj6I10EIKatgfJFpEZg4IGKzCpALbJDF7Q5jy9nVkQhlL9iRv7MuTkf7TjM/w',
};

const sealed = () => sealUnderPassphrase(world, passphrase, context, new Secret(plaintext), cheapHash);
const opened = async (blob: PassphraseSealed, phrase = passphrase, purpose = context) =>
  (await openUnderPassphrase(phrase, purpose, blob))?.expose();

test('a frozen blob of the first version opens with the passphrase in decomposed Unicode', async () => {
  assert.deepEqual(await opened(frozen, new Secret('pa\u0308ssphrase of four words')), plaintext);
});

test('passphraseCost is 256 MiB of memory, 3 passes and parallelism 4', () => {
  const { memory, passes, parallelism } = frozen;
  assert.deepEqual({ memory, passes, parallelism }, passphraseCost);
});

test('a blob opens only with its passphrase and purpose and does not contain the plaintext', async () => {
  const blob = await sealed();
  assert.deepEqual(await opened(blob), plaintext);
  assert.equal(await opened(blob, new Secret('pässphrase of four word')), undefined);
  assert.equal(await opened(blob, new Secret('')), undefined);
  assert.equal(await opened(blob, passphrase, 'certificate-vault v1 master key 0000000000000000'), undefined);
  assert.equal(JSON.stringify(blob).includes(plaintext.toString('base64').slice(0, 20)), false);
});

test('two blobs of the same plaintext have different salts, nonces and ciphertexts', async () => {
  const [one, two] = [await sealed(), await sealed()];
  assert.notEqual(one.salt, two.salt);
  assert.notEqual(one.nonce, two.nonce);
  assert.notEqual(one.sealed, two.sealed);
});

test('a blob does not open after any of its fields was changed', async () => {
  const blob = await sealed();
  const flipped = (text: string) => {
    const bytes = Buffer.from(text, 'base64');
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    return bytes.toString('base64');
  };
  for (const part of ['salt', 'nonce', 'sealed'] as const) {
    assert.equal(await opened({ ...blob, [part]: flipped(blob[part]) }), undefined, part);
    assert.equal(await opened({ ...blob, [part]: '' }), undefined, `no ${part}`);
  }
  for (const cost of ['memory', 'passes', 'parallelism'] as const) {
    assert.equal(await opened({ ...blob, memory: 64, [cost]: blob[cost] + 1 }), undefined, cost);
  }
});

test('a blob with out-of-range costs does not open, and no key is derived', async () => {
  const blob = await sealed();
  const wild = [
    ...[{ memory: 2 ** 21 + 1 }, { passes: 65 }, { memory: 8 * 65, parallelism: 65 }],
    ...[{ memory: 7 }, { passes: 0 }, { parallelism: 0 }],
  ];
  for (const cost of wild) {
    assert.equal(await PassphraseKey.for(passphrase, { ...blob, ...cost }), undefined, JSON.stringify(cost));
    assert.equal(await opened({ ...blob, ...cost }), undefined, JSON.stringify(cost));
  }
});
