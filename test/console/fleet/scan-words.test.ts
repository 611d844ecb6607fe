/** Scans in plain words, and the body of a new one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scanBody, serverNameOf, stateText } from '../../../assets/console/fleet/scan-words.ts';

test('the state of a running scan has its progress, which is complete only at the end', () => {
  assert.equal(stateText({ state: 'running', done: 999, total: 1000 }), 'Running, 99 %');
  assert.equal(stateText({ state: 'running', done: 0, total: 0 }), 'Running, 0 %');
  assert.equal(stateText({ state: 'waiting', done: 0, total: 10 }), 'Waiting');
  assert.equal(stateText({ state: 'finished', done: 10, total: 10 }), 'Finished');
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
