/** Identifiers of certificates in renewal information: the example of the RFC, and everything that is none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRenewalInfoId } from '../../../../src/domain/acme-server/certificates/renewal-info-id.ts';

test('the identifier of RFC 9773 §4.1 has the key identifier and the serial number of its certificate', () => {
  const id = parseRenewalInfoId('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
  assert.equal(id?.authorityKeyId.toString('hex'), '69885b6b87464041e1b37b847ba0ae2cde01c8d4');
  assert.equal(id?.serial, '87654321');
});

test('a serial number without a set first bit has no zero byte in front, and 0 stays', () => {
  assert.equal(parseRenewalInfoId('AQ.Eg')?.serial, '12');
  assert.equal(parseRenewalInfoId('AQ.AA')?.serial, '00');
});

for (const [what, text] of [
  ['nothing', ''],
  ['one part', 'aYhba4dGQEHhs3uEe6CuLN4ByNQ'],
  ['three parts', 'AQ.AQ.AQ'],
  ['an empty part', 'aYhba4dGQEHhs3uEe6CuLN4ByNQ.'],
  ['padding', 'AQ==.AQ=='],
  ['the other alphabet of base64', 'a+hb.AQ'],
  ['bits after the last byte', 'AR.AQ'],
  ['a single character, which is no byte', 'A.AQ'],
  ['a part that is too long', `${'A'.repeat(88)}.AQ`],
  ['very much', 'A'.repeat(100_000)],
] as const) {
  test(`${what} is no identifier`, () => assert.equal(parseRenewalInfoId(text), undefined));
}
