/** Codes of authenticator apps and recovery codes, against the vectors of their RFCs. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { realWorld } from '../../../src/base/world.ts';
import {
  base32,
  createRecoveryCode,
  recoveryCodeIn,
  totpCode,
  totpStep,
  totpStepOf,
  totpUri,
} from '../../../src/crypto/secrets/totp.ts';

const secret = new Secret(Buffer.from('12345678901234567890'));

suite('a code by time', () => {
  test('is rejected outside the step before, the current one and the next', () => {
    const now = 1_111_111_109_000;
    const step = totpStep(now);
    for (const away of [-2, 2, 1000])
      assert.equal(totpStepOf(secret, totpCode(secret, step + away), now), undefined);
    for (const away of [-1, 0, 1])
      assert.equal(totpStepOf(secret, totpCode(secret, step + away), now), step + away);
    for (const text of ['', '08180', '0818044', 'aaaaaa', '０８１８０４'])
      assert.equal(totpStepOf(secret, text, now), undefined);
    assert.equal(totpStepOf(secret, totpCode(secret, 0), 0), 0);
  });

  test('has the values of RFC 6238 appendix B', () => {
    for (const [seconds, code] of [
      [59, '94287082'],
      [1_111_111_109, '07081804'],
      [1_111_111_111, '14050471'],
      [1_234_567_890, '89005924'],
      [2_000_000_000, '69279037'],
      [20_000_000_000, '65353130'],
    ] as const) {
      assert.equal(totpCode(secret, totpStep(seconds * 1000), 8), code);
    }
  });

  test('has the values of RFC 4226 appendix D', () => {
    const codes = '755224 287082 359152 969429 338314 254676 287922 162583 399871 520489'.split(' ');
    for (const [step, code] of codes.entries()) assert.equal(totpCode(secret, step), code);
  });
});

test('Base32 has the values of RFC 4648 section 10, without padding', () => {
  for (const [text, encoded] of [
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ] as const) {
    assert.equal(base32(Buffer.from(text)), encoded);
  }
});

test('the URI for an app escapes the names in it', () => {
  const uri = totpUri(secret, { issuer: 'Certificate Vault', account: 'a+b@vault.test:8443' });
  assert.equal(
    uri,
    'otpauth://totp/Certificate%20Vault:a%2Bb%40vault.test%3A8443?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Certificate%20Vault',
  );
});

test('a recovery code is recognized however it is typed, and nothing else is one', () => {
  const code = createRecoveryCode(realWorld);
  assert.match(code, /^([a-z2-7]{4}-){3}[a-z2-7]{4}$/);
  const plain = code.replaceAll('-', '');
  for (const typed of [code, plain, code.toUpperCase(), ` ${code.replaceAll('-', ' ')}\n`])
    assert.equal(recoveryCodeIn(typed), plain);
  for (const typed of ['', '123456', plain.slice(1), `${plain}a`, '1'.repeat(16)])
    assert.equal(recoveryCodeIn(typed), undefined);
});
