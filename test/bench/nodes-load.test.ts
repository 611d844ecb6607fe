/** What several nodes did under load becomes one figure each (bench/nodes-load.ts). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { together, workSince } from '../../bench/nodes-load.ts';

const latency = { median: 1, p99: 2, refused: 0, failed: 0 };
const busy = { ...latency, perSecond: 300, requests: 600, loopEach: 20, each: 40 };
const quiet = { ...latency, perSecond: 100, requests: 200, loopEach: 40, each: 80 };

test('request counts of nodes are summed, and times are averaged per request', () => {
  const { perSecond, requests, loopEach, each } = together([busy, quiet]);
  assert.deepEqual(
    { perSecond, requests, loopEach, each },
    { perSecond: 400, requests: 800, loopEach: 25, each: 50 },
  );
});

test('database figures are divided by the requests of all nodes', () => {
  const before = { seconds: 10, processorMs: 1000, writes: 5000, logged: 1e6 };
  const after = { seconds: 12, processorMs: 1016, writes: 5080, logged: 1.4e6 };
  const load = together([busy, quiet], workSince(before, after));
  assert.equal(load.databaseEach, 20);
  assert.equal(load.batchesPerSecond, 40);
  assert.equal(load.batchesEach, 0.1);
  assert.equal(load.loggedEach, 500);
});

test('database figures are NaN without a database server', () => {
  const { databaseEach, batchesPerSecond, batchesEach, loggedEach } = together([busy]);
  for (const figure of [databaseEach, batchesPerSecond, batchesEach, loggedEach])
    assert.ok(Number.isNaN(figure));
});
