/** Scans in plain words, and the body of a new one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isActive,
  namesText,
  scanBody,
  serverNameOf,
  stateText,
} from '../../../assets/console/fleet/scan-words.ts';

test('the state of a running scan has its progress', () => {
  assert.equal(
    stateText({ state: 'running', done: 9999, total: 10_000 }),
    `Running: ${(9999).toLocaleString()} of ${(10_000).toLocaleString()} addresses and ports`,
  );
  assert.equal(stateText({ state: 'waiting', done: 0, total: 10 }), 'Waiting');
  assert.equal(stateText({ state: 'finished', done: 10, total: 10 }), 'Finished');
});

test('a scan is active while it runs or is due', () => {
  const at = Date.parse('2026-12-01T12:00:00Z');
  const cases = [
    ['running', null, true],
    ['waiting', '2026-12-01T12:00:00Z', true],
    ['waiting', '2026-12-01T12:00:01Z', false],
    ['finished', null, false],
  ] as const;
  for (const [state, next_run_at, expected] of cases) {
    assert.equal(isActive({ state, next_run_at }, at), expected, `${state} ${next_run_at}`);
  }
});

test('a list of names shows three and counts the rest', () => {
  assert.equal(namesText([]), '');
  assert.equal(namesText(['a', 'b', 'c']), 'a, b, c');
  assert.equal(namesText(['a', 'b', 'c', 'd', 'e']), 'a, b, c and 2 more');
});

test('the body of a new scan splits networks and ports, and keeps invalid ports for the error of the vault', () => {
  assert.deepEqual(scanBody('10.0.0.0/24\n 10.1.0.0/24,', '443, 8443 https', ' 7d '), {
    ...{ networks: ['10.0.0.0/24', '10.1.0.0/24'], ports: [443, 8443, 'https'], interval: '7d' },
  });
  assert.deepEqual(scanBody('10.0.0.7', '443', ''), { networks: ['10.0.0.7'], ports: [443] });
});

test('a found server is watched under its first name that is neither a wildcard nor an address', () => {
  assert.equal(
    serverNameOf({ names: ['*.corp.test', '10.0.0.7', 'fd00::7', 'ldap.corp.test'] }),
    'ldap.corp.test',
  );
  assert.equal(serverNameOf({ names: ['10.0.0.7'] }), '');
});
