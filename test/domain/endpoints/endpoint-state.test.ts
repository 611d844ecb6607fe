/** The state of endpoints: a table of what was served and of what it means at which time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import {
  type EndpointFacts,
  type EndpointState,
  endpointState,
  endpointStates,
  expiringAt,
  rolloutTime,
  untilNextCheck,
} from '../../../src/domain/endpoints/endpoint-state.ts';

const now = Date.UTC(2026, 10, 21, 3, 17);

/** Version 2 of a certificate for 90 days is current, since ten days, and is served. */
const served: EndpointFacts = {
  certificate_id: 7,
  failures: 0,
  current_version: 2,
  current_since: now - 10 * day,
  fingerprint_sha256: 'ab'.repeat(32),
  version: 2,
  not_before: now - 10 * day,
  not_after: now + 80 * day,
  problem: null,
};
const unseen = { fingerprint_sha256: null, version: null, not_before: null, not_after: null } as const;
const watched = { certificate_id: null, version: null, current_version: null, current_since: null } as const;

type Case = {
  readonly why: string;
  readonly facts?: Partial<EndpointFacts>;
  readonly after?: number;
  readonly state: EndpointState;
};

const newer = { version: 1, current_since: now } as const;

const cases: readonly Case[] = [
  { why: 'the current version is served', state: 'current' },
  { why: 'it is not checked yet', facts: unseen, state: 'unchecked' },
  { why: 'the first check failed', facts: { ...unseen, failures: 1 }, state: 'unreachable' },
  { why: 'one check failed after others', facts: { failures: 1 }, state: 'current' },
  { why: 'two checks in a row failed', facts: { failures: 2 }, state: 'unreachable' },
  { why: 'another certificate is served', facts: { version: null }, state: 'unknown' },
  {
    why: 'another certificate is served, which has expired',
    facts: { version: null },
    after: 99 * day,
    state: 'unknown',
  },
  {
    why: 'two checks failed after another certificate was served',
    facts: { version: null, failures: 2 },
    state: 'unreachable',
  },
  {
    why: 'the certificate has no version',
    facts: { version: null, current_version: null, current_since: null },
    state: 'unknown',
  },
  { why: 'a newer version exists since a moment', facts: newer, state: 'current' },
  {
    why: 'a newer version exists and clients still have time',
    facts: newer,
    after: rolloutTime - 1,
    state: 'current',
  },
  {
    why: 'a newer version exists and the time of clients is over',
    facts: newer,
    after: rolloutTime,
    state: 'outdated',
  },
  {
    why: 'a short-lived version is replaced after a quarter of its lifetime',
    facts: { ...newer, not_before: now - hour, not_after: now + 3 * hour },
    after: hour,
    state: 'outdated',
  },
  {
    why: 'a short-lived version is within that quarter',
    facts: { ...newer, not_before: now - hour, not_after: now + 3 * hour },
    after: hour - 1,
    state: 'current',
  },
  {
    why: 'an outdated version is rejected by clients',
    facts: { ...newer, problem: 'x' },
    after: rolloutTime,
    state: 'outdated',
  },
  {
    why: 'a newer version than the current one is served, as after a restored backup',
    facts: { version: 3 },
    after: 2 * day,
    state: 'current',
  },
  { why: 'clients reject the current version', facts: { problem: 'incomplete chain' }, state: 'untrusted' },
  {
    why: 'clients reject an older version that still has time',
    facts: { ...newer, problem: 'x' },
    state: 'untrusted',
  },
  { why: 'the current version has not expired', after: 80 * day - 1, state: 'current' },
  { why: 'the current version has expired', after: 80 * day, state: 'expiring' },
  { why: 'it is watched and valid for longer', facts: watched, after: 57 * day, state: 'current' },
  { why: 'it is watched and the last quarter begins', facts: watched, after: 57.5 * day, state: 'expiring' },
  { why: 'it is watched and has expired', facts: watched, after: 99 * day, state: 'expiring' },
  {
    why: 'it is watched and clients reject it',
    facts: { ...watched, problem: 'x' },
    after: 99 * day,
    state: 'untrusted',
  },
  { why: 'it is watched and not checked yet', facts: { ...watched, ...unseen }, state: 'unchecked' },
  { why: 'the clock was set back', after: -99 * day, state: 'current' },
];

for (const { why, facts, after = 0, state } of cases) {
  test(`an endpoint is ${state} if ${why}`, () => {
    assert.equal(endpointState({ ...served, ...facts }, now + after), state);
  });
}

test('the table of cases has each state', () => {
  assert.deepEqual(new Set(cases.map(({ state }) => state)), new Set(endpointStates));
});

test('a watched certificate for years is announced thirty days before its expiry', () => {
  assert.equal(expiringAt(now, now + 800 * day), now + 770 * day);
  assert.equal(expiringAt(now, now + 40 * day), now + 30 * day);
});

const intervals: readonly (readonly [
  why: string,
  facts: Partial<EndpointFacts>,
  interval: number,
  wait: number,
])[] = [
  ['the last check found the current version', {}, hour, hour],
  ['one check failed', { failures: 1 }, hour, minute],
  ['two checks failed', { failures: 2 }, hour, 10 * minute],
  ['many checks failed', { failures: 1000 }, 30 * day, 10 * minute],
  ['two checks failed, and the interval is shorter', { failures: 2 }, 5 * minute, 5 * minute],
  ['an older version is served since a moment', newer, hour, minute],
  [
    'an older version is served since ten minutes',
    { version: 1, current_since: now - 10 * minute },
    hour,
    5 * minute,
  ],
  ['an older version is served since days', { version: 1, current_since: now - 9 * day }, hour, hour],
  ['another certificate is served', { version: null }, hour, hour],
  ['it is only watched', watched, 6 * hour, 6 * hour],
  ['the clock was set back before the renewal', { version: 1, current_since: now + day }, hour, minute],
];
for (const [why, facts, interval, wait] of intervals) {
  test(`the next check follows after ${wait / minute} minutes if ${why}`, () => {
    assert.equal(untilNextCheck({ ...served, ...facts }, interval, now), wait);
  });
}
