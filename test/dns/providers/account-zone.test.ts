/** Which zone of an account a record belongs into. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accountZone, relativeName, zoneCandidates } from '../../../src/dns/providers/account-zone.ts';

const record = { name: 'a.b.example.com', value: 'v', zone: 'example.com', domain: 'b.example.com' };

test('zoneCandidates lists the name and its parents down to two labels', () => {
  assert.deepEqual(zoneCandidates(record), ['a.b.example.com', 'b.example.com', 'example.com']);
});

test('zoneCandidates lists a zone of one label only if it is configured', () => {
  assert.deepEqual(zoneCandidates({ ...record, name: 'a.lan', zone: 'lan' }), ['a.lan', 'lan']);
});

test('accountZone returns the longest matching zone, regardless of case, trailing dot and order', () => {
  const zones = ['com', 'example.com.', 'B.Example.COM.', 'xb.example.com', 'c.b.example.com'].map(
    (name) => ({ name }),
  );
  assert.deepEqual(accountZone(zones, record), { name: 'b.example.com' });
  assert.equal(accountZone([{ name: 'ample.com' }], record), undefined);
});

test('relativeName returns the labels before the zone, and an empty string for the zone itself', () => {
  assert.equal(relativeName('a.b.example.com', 'example.com'), 'a.b');
  assert.equal(relativeName('example.com', 'example.com'), '');
});
