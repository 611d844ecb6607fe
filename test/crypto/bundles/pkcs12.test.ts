/** PKCS#12 files as openssl writes them, of today and of the 1990s, with right and wrong passwords. */

import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { Problem } from '../../../src/base/problem.ts';
import { Secret } from '../../../src/base/secret.ts';
import { asArgument, looksLikePkcs12, readPkcs12 } from '../../../src/crypto/bundles/pkcs12.ts';
import { keyObject } from '../../../src/crypto/key-pair.ts';
import { type Chain, makeChain, openssl } from '../../harness/ca/openssl-chain.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const dir = mkdtempSync(join(tmpdir(), 'pkcs12-'));
after(() => rmSync(dir, { recursive: true }));

let made: Chain | undefined;
const chain = () => {
  made ??= makeChain(dir);
  return made;
};
const right = new Secret('correct horse');

function exported(...options: string[]): Buffer {
  const { leaf, fullchainPath } = chain();
  const password = ['-passout', 'pass:correct horse'];
  return openssl(
    dir,
    'pkcs12',
    '-export',
    '-in',
    fullchainPath,
    '-inkey',
    leaf.keyPath,
    ...password,
    ...options,
  );
}

function refused(bytes: Buffer, password: Secret<string> | undefined, name = 'site.p12'): Problem {
  try {
    readPkcs12(bytes, password, name);
  } catch (error) {
    assert.ok(error instanceof Problem);
    assert.equal(error.code, 'invalid_request');
    assert.match(error.message, /^[^\n]+\.$/);
    assert.match(error.hint ?? '', /^[^\n]+\.$/);
    assert.equal(inspect(error).includes(password?.expose() || 'correct horse'), false);
    return error;
  }
  throw new assert.AssertionError({ message: 'it was read' });
}

/** Runs the command of the hint on the file, as a person would who enters the password. */
function assertConverts({ hint = '' }: Problem, bytes: Buffer): void {
  const [, command = ''] = /`openssl (.+)`/.exec(hint) ?? [];
  writeFileSync(join(dir, 'site.p12'), bytes);
  rmSync(join(dir, 'converted.pem'), { force: true });
  openssl(dir, ...command.split(' '), '-passin', `pass:${right.expose()}`);
  const key = createPrivateKey(readFileSync(join(dir, 'converted.pem')));
  assert(key.equals(createPrivateKey(chain().leaf.keyPem)));
}

const forms: Record<string, string[]> = {
  'with OpenSSL defaults': [],
  'with triple DES for Windows': ['-certpbe', 'PBE-SHA1-3DES', '-keypbe', 'PBE-SHA1-3DES', '-macalg', 'sha1'],
  'without a MAC': ['-nomac'],
  'with friendly names': ['-name', 'the site', '-caname', 'one'],
};

for (const [form, options] of Object.entries(forms)) {
  test(
    `a PKCS#12 file ${form} returns the leaf first, its intermediates and the private key`,
    needs('openssl'),
    () => {
      const bytes = exported(...options);
      assert.equal(looksLikePkcs12(bytes), true);
      const { certificates, privateKey } = readPkcs12(bytes, right, 'site.p12');
      const { leaf, intermediates } = chain();
      const raw = (pem: string) => new X509Certificate(pem).raw;
      assert.deepEqual(certificates[0], raw(leaf.certificatePem));
      assert.deepEqual(
        new Set(certificates.map((der) => der.toString('hex'))),
        new Set([leaf, ...intermediates].map(({ certificatePem }) => raw(certificatePem).toString('hex'))),
      );
      assert.ok(privateKey !== undefined && keyObject(privateKey).equals(createPrivateKey(leaf.keyPem)));
    },
  );
}

test(
  'a file without a key gives its certificates, one without certificates its key',
  needs('openssl'),
  () => {
    const { certificates, privateKey } = readPkcs12(exported('-nokeys'), right, 'site.p12');
    assert.deepEqual([certificates.length, privateKey], [3, undefined]);
    const keyOnly = readPkcs12(exported('-nocerts'), right, 'site.p12');
    assert.equal(keyOnly.certificates.length, 0);
    assert.notEqual(keyOnly.privateKey, undefined);
  },
);

test('a file with an empty password opens when no password is given', needs('openssl'), () => {
  const bytes = exported('-passout', 'pass:');
  for (const password of [undefined, new Secret('')]) {
    assert.equal(readPkcs12(bytes, password, 'site.p12').certificates.length, 3);
  }
});

test(
  'missing and wrong passwords give different errors, and the openssl command in the first hint works',
  needs('openssl'),
  () => {
    // Without a MAC, one of 256 wrong passwords decrypts to valid padding, and damage looks the same.
    for (const [bytes, doubt] of [
      [exported(), ['', '']],
      [exported('-nomac'), ['(?:, or it is damaged)?', '(?:, or the file is damaged)?']],
    ] as const) {
      const missing = refused(bytes, undefined);
      const protectedBy = 'site\\.p12 is a PKCS#12 file that is protected by a password';
      assert.match(missing.message, new RegExp(`^${protectedBy}${doubt[0]}\\.$`));
      assert.match(missing.hint ?? '', /`openssl pkcs12 -in site\.p12 -nodes -out converted\.pem`/);
      assertConverts(missing, bytes);
      for (const password of ['mistaken', 'correct horse\0', 'correct']) {
        const wrong = refused(bytes, new Secret(password));
        const isWrong = 'The password of the PKCS#12 file site\\.p12 is wrong';
        assert.match(wrong.message, new RegExp(`^${isWrong}${doubt[1]}\\.$`));
      }
    }
  },
);

test(
  'a whole file without a MAC whose decrypted content is invalid names both the password and damage',
  needs('openssl'),
  () => {
    const bytes = exported('-nomac');
    // aes256-CBC-PAD and its IV, of which a bit is that of the first decrypted byte; the padding stays valid.
    const cipher = Buffer.from('60864801650304012a0410', 'hex');
    const iv = bytes.indexOf(cipher) + cipher.length;
    assert(iv > cipher.length);
    bytes.writeUInt8(bytes.readUInt8(iv) ^ 1, iv);
    const damaged = refused(bytes, right);
    assert.equal(
      damaged.message,
      'The password of the PKCS#12 file site.p12 is wrong, or the file is damaged.',
    );
  },
);

test(
  'RC2-40 encryption is rejected with a hint whose openssl -legacy command converts the file',
  needs('openssl'),
  () => {
    const bytes = exported('-legacy', '-certpbe', 'PBE-SHA1-RC2-40', '-keypbe', 'PBE-SHA1-RC2-40');
    const problem = refused(bytes, right);
    assert.match(problem.message, /site\.p12 .* not supported, such as RC2-40/);
    assert.match(problem.hint ?? '', /`openssl pkcs12 -legacy -in site\.p12 -nodes -out converted\.pem`/);
    assertConverts(problem, bytes);
  },
);

test(
  'a truncated file is reported as damaged, and looksLikePkcs12 returns false for other content',
  needs('openssl'),
  () => {
    const bytes = exported();
    assert.match(refused(bytes.subarray(0, 400), right).message, /but is damaged/);
    assert.equal(looksLikePkcs12(Buffer.from('hello')), false);
    assert.equal(looksLikePkcs12(Buffer.alloc(0)), false);
    const { leaf } = chain();
    assert.equal(looksLikePkcs12(new X509Certificate(leaf.certificatePem).raw), false);
    assert.equal(
      looksLikePkcs12(createPrivateKey(leaf.keyPem).export({ type: 'pkcs8', format: 'der' })),
      false,
    );
  },
);

test('readPkcs12 throws only Problem for a file with changed bytes', needs('openssl'), () => {
  const bytes = exported();
  const changes = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(changes, fc.option(fc.string(), { nil: undefined }), (positions, password) => {
      const changed = Buffer.from(bytes);
      for (const [at, value] of positions) changed[at] = value;
      try {
        readPkcs12(changed, password === undefined ? right : new Secret(password), 'site.p12');
      } catch (error) {
        assert.ok(error instanceof Problem);
      }
    }),
    fuzzRuns(300),
  );
});

test('a file name with shell metacharacters appears as FILE in commands', () => {
  assert.equal(asArgument('/etc/ssl/a_b-c.d.pem'), '/etc/ssl/a_b-c.d.pem');
  for (const name of ['my site.p12', '-in', '$(reboot).p12', 'a;b', 'é.pem', ''])
    assert.equal(asArgument(name), 'FILE');
});
