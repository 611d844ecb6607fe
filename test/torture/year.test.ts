/** The short form of the simulated year, and a comparison of its clients with the installer. */
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { test } from 'node:test';
import { day } from '../../src/base/duration.ts';
import { machine } from '../harness/client/installer.ts';
import { clientVault } from '../harness/client/vault.ts';
import { PollingClient } from './polling-client.ts';
import { simulateYear } from './year.ts';

test('after a year of renewals and outages with ten clients, all records match', async (t) => {
  const plan = {
    ...{ clients: 10, certificates: 4, days: 365, longestStep: day, renewBetweenEvery: 211, revoked: 1 },
    outages: [
      { day: 40, hours: 5 },
      { day: 100, hours: 50 },
    ],
  };
  const figures = await simulateYear(plan);
  assert.equal(figures.polls, 3650);
  // Each certificate has a little more than twelve scheduled renewals per year.
  assert.ok(figures.renewals - figures.renewalsBetweenTwoFiles > 24, JSON.stringify(figures));
  assert.ok(figures.renewalsBetweenTwoFiles > 10);
  assert.ok(figures.refused > 100 && figures.failedRuns > figures.refused);
  t.diagnostic(JSON.stringify(figures));
});

test('the clients of the simulation send the same requests for files as the installer', async (t) => {
  const vault = await clientVault(t);
  const before = await vault.relay();
  const asked = async (run: () => Promise<unknown>) => {
    before.seen.length = 0;
    await run();
    return before.seen
      .filter(({ path }) => path.startsWith('/api/') && !path.includes('/deployments/'))
      .map(({ path, headers }) => [path, headers['if-none-match'], headers.authorization, headers.accept]);
  };
  const client = machine(t);
  const model = new PollingClient('web', vault.key, {
    ...{ url: () => before.url, agent: new Agent(), now: Date.now },
    pause: async () => undefined,
    seen: () => undefined,
  });
  const install = () => vault.install(client, ['--server', before.url]);
  const runs: Record<string, () => Promise<unknown>> = {
    'the first': install,
    'a run without changes': () => client.run(['--run']),
  };
  for (const [title, run] of Object.entries(runs)) {
    assert.deepEqual(await asked(() => model.run()), await asked(run), title);
  }
  await vault.renew();
  assert.deepEqual(
    await asked(() => model.run()),
    await asked(() => client.run(['--run'])),
    'after a renewal',
  );
  before.answer = (path) => (path.includes('private.key') ? { status: 503 } : undefined);
  const environment = { CERTIFICATE_VAULT_PAUSE_SECONDS: '0' };
  const failing = await asked(() => client.run(['--run'], { environment }));
  assert.equal(failing.length, 4);
  assert.deepEqual(await asked(() => model.run()), failing, 'when the vault is unavailable');
});
