/**
 * Counts of rounds in PKCS#12 files that were made to keep the vault busy: added up over all parts, in whatever way they
 * are written, and refused before OpenSSL begins.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Problem } from '../../src/base/problem.ts';
import { Secret } from '../../src/base/secret.ts';
import { readPkcs12 } from '../../src/crypto/pkcs12.ts';
import { looksLikePkcs12, roundsIn } from '../../src/crypto/pkcs12-rounds.ts';
import { ber, berInteger, berOctets, type LengthForm } from '../harness/ber.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';
import { needs } from '../harness/missing-program.ts';
import { type Chain, makeChain, openssl } from '../harness/openssl-chain.ts';
import { tempDir } from '../harness/temp-dir.ts';

const oid = (hex: string) => ber(0x06, Buffer.from(hex, 'hex'));
const pbes2 = oid('2a864886f70d01050d');
const pbkdf2 = oid('2a864886f70d01050c');
const scrypt = oid('2b06010401da47040b');
const data = oid('2a864886f70d010701');
const encryptedData = oid('2a864886f70d010706');
const aes256 = oid('60864801650304012a');

/** How one part is written. */
const writing = fc.record({
  form: fc.constantFrom<LengthForm>('short', 'padded', 'indefinite'),
  cuts: fc.array(fc.nat(5000), { maxLength: 4 }),
  salt: fc.uint8Array({ minLength: 1, maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
  garbage: fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
});

type Writing = typeof writing extends fc.Arbitrary<infer Value> ? Value : never;

/** A part of the file that is encrypted with so many rounds (RFC 5652 §8, RFC 8018 §A). */
function encrypted(rounds: number, { form, cuts, salt }: Writing): Buffer {
  const kdf = ber(0x30, [pbkdf2, ber(0x30, [berOctets(salt, cuts, form), berInteger(rounds)], form)], form);
  const cipher = ber(0x30, [aes256, ber(0x04, Buffer.alloc(16, 7))], form);
  const algorithm = ber(0x30, [pbes2, ber(0x30, [kdf, cipher], form)], form);
  const content = ber(0x30, [data, algorithm, ber(0x80, Buffer.alloc(32, 9))], form);
  return ber(0x30, [encryptedData, ber(0xa0, ber(0x30, [berInteger(0), content], form), form)], form);
}

/** A PKCS#12 file of these parts (RFC 7292 §4) with a checksum of so many rounds. */
function file(parts: readonly Buffer[], macRounds: number, { form, cuts, salt, garbage }: Writing): Buffer {
  const safe = Buffer.concat([ber(0x30, parts, form), garbage]);
  const digest = ber(
    0x30,
    [ber(0x30, [oid('608648016503040201'), ber(0x05, [])]), ber(0x04, Buffer.alloc(32, 1))],
    form,
  );
  const mac = ber(0x30, [digest, berOctets(salt, cuts, form), berInteger(macRounds)], form);
  const content = ber(0x30, [data, ber(0xa0, berOctets(safe, cuts, form), form)], form);
  return ber(0x30, [berInteger(3), content, mac], form);
}

const counts = fc.oneof(fc.nat(0xffff_ffff), fc.constantFrom(0, 1, 127, 128, 2048, 2_000_001, 2 ** 40));

test('the rounds of all parts are found and added up, however lengths and strings are written', () => {
  const parts = fc.array(fc.tuple(counts, writing), { maxLength: 5 });
  const property = fc.property(parts, counts, writing, (all, macRounds, outer) => {
    const bytes = file(
      all.map(([rounds, how]) => encrypted(rounds, how)),
      macRounds,
      outer,
    );
    assert.equal(looksLikePkcs12(bytes), true);
    assert.equal(
      roundsIn(bytes),
      all.reduce((sum, [rounds]) => sum + rounds, macRounds),
    );
  });
  fc.assert(property, fuzzRuns(500));
});

test('whatever the bytes are, looking for rounds ends at once and throws nothing', () => {
  const seed = file([encrypted(2048, plain)], 2048, plain);
  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc
      .array(fc.tuple(fc.nat(seed.length - 1), fc.nat(255)), { maxLength: 6 })
      .map((changes) => changes.reduce((bytes, [at, value]) => bytes.with(at, value), seed as Uint8Array))
      .map((bytes) => Buffer.from(bytes)),
  );
  const property = fc.property(anything, (bytes) => {
    const rounds = roundsIn(bytes);
    assert(rounds >= 0);
    looksLikePkcs12(bytes);
  });
  fc.assert(property, fuzzRuns(2000));
  for (const scrap of [
    '3080',
    '2480',
    '30',
    '0400',
    '0430',
    '2404',
    '1f80',
    '3084000fffff',
    '020102',
    '0000',
  ]) {
    const bytes = Buffer.from(scrap.repeat(2 ** 20 / (scrap.length / 2)), 'hex');
    const began = performance.now();
    roundsIn(bytes);
    const took = performance.now() - began;
    assert(took < 2000, `a mebibyte of ${scrap} took ${took} ms`);
  }
});

const plain: Writing = { form: 'short', cuts: [], salt: Buffer.from('saltsalt'), garbage: Buffer.alloc(0) };

let made: Chain | undefined;

/** The parts of a file as openssl writes it, without a checksum, and with so many rounds. */
function opensslFile(t: Parameters<typeof tempDir>[0], rounds: number): Buffer {
  const dir = tempDir(t);
  made = makeChain(dir);
  const { leaf, fullchainPath } = made;
  const source = ['-in', fullchainPath, '-inkey', leaf.keyPath, '-passout', 'pass:right'];
  return openssl(dir, 'pkcs12', '-export', ...source, '-nomac', '-iter', String(rounds));
}

test('files that OpenSSL would hash for minutes are refused in an instant', needs('openssl'), (t) => {
  const usual = opensslFile(t, 600_000);
  assert.equal(readPkcs12(usual, new Secret('right'), 'site.p12').certificates.length, 3);
  assert.equal(roundsIn(usual), 1_200_000);
  const many = Array.from({ length: 1000 }, () => encrypted(1_999_999, plain));
  const kdf = ber(0x30, [
    scrypt,
    ber(0x30, [ber(0x04, plain.salt), ...[65_536, 1, 150_000].map(berInteger)]),
  ]);
  const hidden = file([encrypted(2_147_483_647, { ...plain, form: 'padded', cuts: [3] })], 1, plain);
  const hostile = {
    'a thousand parts': file(many, 1, plain),
    'scrypt with much memory and time': file([ber(0x30, [pbes2, ber(0x30, [kdf])])], 1, plain),
    'a count behind a salt in pieces': hidden,
    'a checksum of ten hours': file([], 2 ** 40, plain),
  };
  for (const [what, bytes] of Object.entries(hostile)) {
    const began = performance.now();
    assert.throws(
      () => readPkcs12(bytes, new Secret('right'), 'site.p12'),
      (error) => error instanceof Problem && /more than 2000000 rounds/.test(error.message),
      what,
    );
    assert(performance.now() - began < 1000, what);
  }
});
