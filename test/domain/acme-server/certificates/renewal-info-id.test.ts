/** Identifiers of certificates in renewal information: the example of the RFC, and everything that is none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRenewalInfoId } from '../../../../src/domain/acme-server/certificates/renewal-info.ts';

test('the example identifier of RFC 9773 §4.1 parses to its key identifier and serial number', () => {
  const id = parseRenewalInfoId('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
  assert.equal(id?.authorityKeyId.toString('hex'), '69885b6b87464041e1b37b847ba0ae2cde01c8d4');
  assert.equal(id?.serial, '87654321');
});

test('a serial number with the first bit clear parses without a leading zero byte, and 0 parses as 00', () => {
  assert.equal(parseRenewalInfoId('AQ.Eg')?.serial, '12');
  assert.equal(parseRenewalInfoId('AQ.AA')?.serial, '00');
});

for (const [what, text] of [
  ['an empty string', ''],
  ['one part', 'aYhba4dGQEHhs3uEe6CuLN4ByNQ'],
  ['three parts', 'AQ.AQ.AQ'],
  ['an empty part', 'aYhba4dGQEHhs3uEe6CuLN4ByNQ.'],
  ['padding', 'AQ==.AQ=='],
  ['a character outside base64url', 'a+hb.AQ'],
  ['set bits after the last byte', 'AR.AQ'],
  ['a single character instead of a byte', 'A.AQ'],
  ['a part that is too long', `${'A'.repeat(88)}.AQ`],
  ['100,000 characters', 'A'.repeat(100_000)],
] as const) {
  test(`parseRenewalInfoId returns undefined for ${what}`, () =>
    assert.equal(parseRenewalInfoId(text), undefined));
}
