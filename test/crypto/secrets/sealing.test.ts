/** Sealing: a blob opens for the key and the owner it was sealed for, whole and unchanged, and for nothing else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Secret } from '../../../src/base/secret.ts';
import { MasterKey } from '../../../src/crypto/secrets/master-key.ts';
import { type BlobOwner, open, SealError, seal, sealedSize } from '../../../src/crypto/secrets/sealing.ts';
import { TestWorld } from '../../harness/test-world.ts';

const world = new TestWorld();
const key = new MasterKey(new Secret(Buffer.from([...Array(32).keys()])));
const owner: BlobOwner = {
  table: 'certificate_versions',
  record: '7/3',
  purpose: 'seal: certificate private key',
};
const overhead = 1 + 8 + 12 + 16;

/** Asserts that the blob failed to decrypt, and why. */
function assertRefused(blob: Buffer, reason: SealError['reason'], as = owner, by = key): void {
  assert.throws(
    () => open(by, as, blob),
    (error) => error instanceof SealError && error.reason === reason,
  );
}

test('a frozen blob of format 1 opens', () => {
  // It must always open: databases hold blobs like it. Never change it; a new format gets a vector of its own.
  // Master key 00 01 … 1f, nonce a5 × 12, the owner above.
  const frozen =
    '0122167d1c05b7bba4a5a5a5a5a5a5a5a5a5a5a5a5122ad740a599920d55c9902dfcc8' +
    '6165211b2e607319ef511f42061fef8b8747f7aa923f';
  assert.equal(open(key, owner, Buffer.from(frozen, 'hex')).expose().toString(), 'frozen on 2026-11-21');
  const sameNonce = { ...world, randomBytes: (size: number) => Buffer.alloc(size, 0xa5) };
  const again = seal(key, sameNonce, owner, new Secret(Buffer.from('frozen on 2026-11-21')));
  assert.equal(again.toString('hex'), frozen);
});

test('a sealed blob opens to its plaintext and sealedSize returns the length of the plaintext', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const plaintext = Buffer.from(bytes);
      const blob = seal(key, world, owner, new Secret(plaintext));
      assert.equal(blob.length, plaintext.length + overhead);
      assert.equal(sealedSize(blob), plaintext.length);
      assert.deepEqual(open(key, owner, blob).expose(), plaintext);
    }),
  );
});

test('an empty plaintext is sealed and opens as empty', () => {
  const blob = seal(key, world, owner, new Secret(Buffer.alloc(0)));
  assert.equal(sealedSize(blob), 0);
  assert.equal(open(key, owner, blob).expose().length, 0);
});

test('the same plaintext never gives the same blob, and never appears in it', () => {
  const plaintext = Buffer.from('-----BEGIN PRIVATE KEY-----');
  const blobs = Array.from({ length: 100 }, () => seal(key, world, owner, new Secret(plaintext)));
  assert.equal(new Set(blobs.map((blob) => blob.toString('hex'))).size, 100);
  assert.equal(
    blobs.some((blob) => blob.includes(plaintext.subarray(0, 8))),
    false,
  );
});

const otherOwners: Record<string, BlobOwner> = {
  'another row': { ...owner, record: '7/4' },
  'a row with a longer ID': { ...owner, record: '7/33' },
  'another table': { ...owner, table: 'renewals' },
  'another purpose': { ...owner, purpose: 'seal: certificate authority key' },
  'an owner with the same text split elsewhere': { ...owner, table: 'certificate_versions7', record: '/3' },
  'a record that imitates the separator': { ...owner, table: 'certificate_versions","7/3', record: '' },
};

for (const [where, other] of Object.entries(otherOwners)) {
  test(`a blob moved to ${where} fails to decrypt`, () => {
    assertRefused(seal(key, world, owner, new Secret(Buffer.from('key'))), 'damaged', other);
  });
}

test('a blob with any single bit flipped fails to decrypt', () => {
  const blob = seal(key, world, owner, new Secret(Buffer.from('a private key')));
  for (let bit = 0; bit < blob.length * 8; bit += 1) {
    const position = Math.floor(bit / 8);
    const flipped = Buffer.from(blob);
    flipped[position] = (blob[position] ?? 0) ^ (1 << (bit % 8));
    assertRefused(flipped, position === 0 ? 'format' : position < 9 ? 'other-key' : 'damaged');
  }
});

test('a blob truncated at any length fails to decrypt', () => {
  const blob = seal(key, world, owner, new Secret(Buffer.from('a private key')));
  for (let length = 0; length < blob.length; length += 1) {
    assertRefused(blob.subarray(0, length), length < overhead ? 'format' : 'damaged');
    if (length < overhead) assert.throws(() => sealedSize(blob.subarray(0, length)), SealError);
  }
  assertRefused(Buffer.concat([blob, Buffer.of(0)]), 'damaged');
  assertRefused(blob.subarray(1), 'format');
});

test('a blob of another master key fails with reason other-key and the ID of that key', () => {
  const other = new MasterKey(new Secret(Buffer.alloc(32, 1)));
  const blob = seal(other, world, owner, new Secret(Buffer.from('key')));
  assertRefused(blob, 'other-key');
  assert.throws(() => open(key, owner, blob), { message: new RegExp(other.id.toString('hex')) });
});

test('a key with the same ID but other bytes fails to decrypt a blob', () => {
  const other = new MasterKey(new Secret(Buffer.alloc(32, 1)));
  const blob = seal(other, world, owner, new Secret(Buffer.from('key')));
  key.id.copy(blob, 1);
  assertRefused(blob, 'damaged');
});

for (const format of [0, 2, 0x30, 255]) {
  test(`a blob of unknown format ${format} is rejected with the format in the message`, () => {
    const blob = seal(key, world, owner, new Secret(Buffer.from('key')));
    blob[0] = format;
    assertRefused(blob, 'format');
    assert.throws(() => open(key, owner, blob), { message: new RegExp(`format ${format}$`) });
    assert.throws(() => sealedSize(blob), SealError);
  });
}

test('the decryption error shows neither plaintext nor ciphertext', () => {
  const blob = seal(key, world, owner, new Secret(Buffer.from('a private key')));
  blob[blob.length - 1] = (blob.at(-1) ?? 0) ^ 1;
  assert.throws(
    () => open(key, owner, blob),
    ({ message }: Error) =>
      message.startsWith('the sealed certificate private key failed to decrypt') &&
      !message.includes('a private key') &&
      !message.includes(blob.subarray(21, 30).toString('hex')),
  );
});
