/** Which hosts would break if a certificate expired now: those with any version of it, in any state. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Deployment } from '../../../assets/console/data/shapes.ts';
import { type ExpiryOutcome, expiryOutcome } from '../../../assets/console/fleet/expiry-outcome.ts';
import { deployment } from './deployment.ts';

/** Version 1 has expired, 2 expires next, and 3 is the current one. */
const ends = new Map([
  [1, 500],
  [2, 2000],
  [3, 3000],
]);

const nothing: ExpiryOutcome = { breaking: [], current: [], older: [], expired: [], silent: [], waiting: [] };

function outcomeOf(jobs: readonly Partial<Deployment>[]): ExpiryOutcome {
  const deployments = jobs.map((job) => deployment({ current_version: 3, version: 3, ...job }));
  return expiryOutcome(deployments, (version) => ends.get(version), 1000);
}

const web1 = { host: 'web1' };

const outcomes: readonly (readonly [what: string, Partial<Deployment>[], Partial<ExpiryOutcome>])[] = [
  ['no jobs', [], {}],
  ['the current version', [web1], { breaking: ['web1'], current: ['web1'] }],
  ['a newer version than the list knows', [{ version: 4 }], { breaking: ['web1'], current: ['web1'] }],
  [
    'an older version',
    [{ version: 2, state: 'outdated' }],
    { breaking: ['web1'], older: [{ host: 'web1', version: 2 }] },
  ],
  [
    'an older version on one of two jobs',
    [web1, { ...web1, version: 2 }],
    { breaking: ['web1'], older: [{ host: 'web1', version: 2 }] },
  ],
  ['an expired version', [{ version: 1 }], { breaking: ['web1'], expired: ['web1'] }],
  [
    'an expired version on one of three jobs',
    [{ version: 3 }, { version: 1 }, { version: 2 }],
    { breaking: ['web1'], expired: ['web1'] },
  ],
  [
    'a version whose end is unknown',
    [{ version: 3, host: 'web1' }, { version: 0 }],
    { breaking: ['web1'], older: [{ host: 'web1', version: 0 }] },
  ],
  ['no version', [{ version: null }], { waiting: ['web1'] }],
  ['no version on one of two jobs', [{ version: null }, web1], { breaking: ['web1'], current: ['web1'] }],
  [
    'no version and a failed run',
    [{ version: null, state: 'failing', error: 'disk full' }],
    { waiting: ['web1'] },
  ],
  [
    'only silent jobs',
    [{ state: 'silent' }, { state: 'silent', version: 2 }],
    { breaking: ['web1'], older: [{ host: 'web1', version: 2 }], silent: ['web1'] },
  ],
  ['one silent job of two', [{ state: 'silent' }, web1], { breaking: ['web1'], current: ['web1'] }],
  ['a silent job without a version', [{ state: 'silent', version: null }], { waiting: ['web1'] }],
  [
    'an imported certificate without a current version',
    [{ version: 2, current_version: null }],
    { breaking: ['web1'], current: ['web1'] },
  ],
];

for (const [what, jobs, outcome] of outcomes) {
  test(`the outcome of an expiry for a host with ${what}`, () => {
    assert.deepEqual(outcomeOf(jobs), { ...nothing, ...outcome });
  });
}

test('an expiry breaks each host once, and hosts are sorted as people count', () => {
  const hosts = ['web10', 'web2', 'db', 'web10', 'web1'].map((host) => ({ host }));
  const waiting = ['new10', 'new9'].map((host) => ({ host, version: null }));
  const outcome = outcomeOf([...hosts, ...waiting]);
  assert.deepEqual(outcome.breaking, ['db', 'web1', 'web2', 'web10']);
  assert.deepEqual(outcome.waiting, ['new9', 'new10']);
});

test('a version expires in the moment that its end names', () => {
  const at = (now: number) => expiryOutcome([deployment({ version: 2 })], () => 2000, now).expired;
  assert.deepEqual([at(1999), at(2000)], [[], ['web1']]);
});
