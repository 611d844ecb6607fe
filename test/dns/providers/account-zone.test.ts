/** Which zone of an account a record belongs into. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accountZone, relativeName, zoneCandidates } from '../../../src/dns/providers/account-zone.ts';

const record = { name: 'a.b.example.com', value: 'v', zone: 'example.com', domain: 'b.example.com' };

test('zones are looked for from the name itself down to two labels', () => {
  assert.deepEqual(zoneCandidates(record), ['a.b.example.com', 'b.example.com', 'example.com']);
});

test('a zone of one label is only looked for if one is configured', () => {
  assert.deepEqual(zoneCandidates({ ...record, name: 'a.lan', zone: 'lan' }), ['a.lan', 'lan']);
});

test('the longest zone wins, however it is written and in any order', () => {
  const zones = ['com', 'example.com.', 'B.Example.COM.', 'xb.example.com', 'c.b.example.com'].map(
    (name) => ({ name }),
  );
  assert.deepEqual(accountZone(zones, record), { name: 'b.example.com' });
  assert.equal(accountZone([{ name: 'ample.com' }], record), undefined);
});

test('a record is called by the labels before its zone, and not at all at the zone itself', () => {
  assert.equal(relativeName('a.b.example.com', 'example.com'), 'a.b');
  assert.equal(relativeName('example.com', 'example.com'), '');
});
