/** DER as X.690 wants it: the shortest lengths and numbers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromHex, integer, objectIdentifier, octetString, setOf, tagged } from '../../src/crypto/der.ts';

test('lengths have one byte below 128, and as few as possible above', () => {
  const heads: readonly [number, string][] = [
    [0, '0400'],
    [127, '047f'],
    [128, '048180'],
    [255, '0481ff'],
    [256, '04820100'],
    [65_535, '0482ffff'],
    [65_536, '0483010000'],
  ];
  for (const [size, head] of heads) {
    const der = octetString(Buffer.alloc(size));
    assert.equal(der.subarray(0, der.length - size).toString('hex'), head);
  }
  assert.equal(tagged(0x30, Buffer.of(1), Buffer.of(2)).toString('hex'), '30020102');
});

test('numbers are positive and as short as possible', () => {
  const numbers: readonly [number | string, string][] = [
    [0, '020100'],
    [127, '02017f'],
    [128, '02020080'],
    [256, '02020100'],
    [2 ** 53, '020720000000000000'],
    ['0000ff', '020200ff'],
    ['00', '020100'],
    ['123', '02020123'],
    ['80', '02020080'],
  ];
  for (const [number, der] of numbers) {
    const given = typeof number === 'string' ? fromHex(number) : number;
    assert.equal(integer(given).toString('hex'), der, String(number));
  }
});

test('object identifiers are encoded with seven bits per byte', () => {
  const identifiers = {
    '1.2.840.113549.1.7.1': '06092a864886f70d010701',
    '2.5.29.20': '0603551d14',
    '2.16.840.1.101.3.4.1.42': '060960864801650304012a',
  };
  for (const [dotted, der] of Object.entries(identifiers)) {
    assert.equal(objectIdentifier(dotted).toString('hex'), der);
  }
});

test('the members of a set are sorted by their encoding', () => {
  assert.equal(setOf(integer(2), integer(1), integer(128)).toString('hex'), '310a02010102010202020080');
});
