/** What a job says about itself: why it has its state, and which version is installed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Deployment } from '../../../assets/console/data/shapes.ts';
import { reasonOf, versionText } from '../../../assets/console/fleet/deployment-words.ts';
import { deployment } from './deployment.ts';

const ok = { result: 'ok', output: 'reloaded' } as const;
const failed = { result: 'failed', output: 'nginx: test failed' } as const;
const mute = { result: 'failed', output: null } as const;

const reasons: readonly (readonly [Partial<Deployment>, string | undefined])[] = [
  [{}, undefined],
  [{ reload: ok, verify: ok }, undefined],
  [{ version: 3 }, undefined],
  [{ version: 1 }, 'Installs it at the next run'],
  [{ version: null }, 'Installs it at the next run'],
  [{ version: null, current_version: null }, 'No version issued yet'],
  [{ state: 'outdated', version: 1 }, 'Not installed in time'],
  [{ state: 'failing', reload: failed }, 'Reload failed: nginx: test failed'],
  [{ state: 'failing', reload: mute, verify: ok }, 'Reload failed'],
  [{ state: 'failing', reload: ok, verify: mute }, 'Verification failed'],
  [{ state: 'failing', error: 'disk full', version: 1 }, 'Last run failed: disk full'],
  [
    { state: 'failing', reload: failed, verify: { result: 'failed', output: 'old certificate' } },
    'Reload failed: nginx: test failed. Verification failed: old certificate',
  ],
  [{ state: 'silent', version: 1 }, 'No report when one was due'],
  [
    { state: 'silent', reload: failed },
    'No report when one was due. Before that: Reload failed: nginx: test failed',
  ],
  [
    { state: 'silent', error: 'disk full', reload: mute },
    'No report when one was due. Before that: Last run failed: disk full. Reload failed',
  ],
];

test('the reason of a state names each failed step with its output', () => {
  for (const [wanted, reason] of reasons) {
    assert.equal(reasonOf(deployment(wanted)), reason, JSON.stringify(wanted));
  }
});

const versions: readonly (readonly [version: number | null, current: number | null, text: string])[] = [
  [2, 2, '2'],
  [1, 2, '1, current: 2'],
  [3, 2, '3, current: 2'],
  [null, 2, 'none, current: 2'],
  [1, null, '1'],
  [null, null, '—'],
];

test('the version that is installed stands alone only if it is the current one', () => {
  for (const [version, current, text] of versions) {
    assert.equal(versionText(deployment({ version, current_version: current })), text);
  }
});
