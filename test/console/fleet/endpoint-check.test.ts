/** Whether the page of an endpoint shows what it loaded, or the result of a check that a person started. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Endpoint } from '../../../assets/console/data/shapes.ts';
import { latestOf } from '../../../assets/console/fleet/endpoint-check.ts';
import { endpoint } from './endpoint.ts';

const checked = endpoint({ checked_at: '2026-11-29T03:20:00.5Z', error: 'connection refused' });

/** What the page loaded. */
const older: readonly (readonly [what: string, loaded: Partial<Endpoint>])[] = [
  ['an hour before it', { checked_at: '2026-11-29T02:20:00Z' }],
  ['half a second before it', { checked_at: '2026-11-29T03:20:00Z' }],
  ['a whole second before it', { checked_at: '2026-11-29T03:19:59.5Z' }],
];

const newer: readonly (readonly [what: string, loaded: Partial<Endpoint>])[] = [
  ['the same check', { checked_at: '2026-11-29T03:20:00.5Z' }],
  ['a later check', { checked_at: '2026-11-29T03:20:01Z' }],
  ['no check since an edit', { checked_at: null }],
  ['another endpoint', { id: 2 }],
  ['another address', { address: 'www.example.com:8443' }],
  ['another certificate', { certificate: 'other' }],
  ['another interval', { interval: '2h' }],
  ['a version that was issued since the check', { current_version: 3 }],
];

suite('the latest of an endpoint and its check', () => {
  for (const [what, changes] of older)
    test(`the check is shown while the page has a result of ${what}`, () =>
      assert.equal(latestOf(endpoint(changes), checked), checked));

  for (const [what, changes] of newer) {
    test(`the page shows what it loaded if that is ${what}`, () => {
      const loaded = endpoint(changes);
      assert.equal(latestOf(loaded, checked), loaded);
    });
  }

  test('the page shows what it loaded before a person starts a check', () => {
    const loaded = endpoint();
    assert.equal(latestOf(loaded, undefined), loaded);
  });
});
