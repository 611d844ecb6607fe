/** The short form of the fleet simulation. */
import { test } from 'node:test';
import { day, hour, second } from '../../src/base/duration.ts';
import { simulateFleet } from '../harness/fleet/fleet.ts';
import { checkFleet, fleetPlan } from './fleet.ts';

test('a small fleet is renewed in time despite CA and DNS provider outages, without reaching a CA rate limit', async (t) => {
  const plan = {
    ...fleetPlan(40, 'short', day / 2),
    ...{ runs: 1.7 * day, maxNames: 6, step: 10 * second },
    caDown: { ca: 1, from: 3 * hour, to: 6 * hour },
    providerDown: { provider: 3, from: 4 * hour, to: 10 * hour },
  };
  const figures = await simulateFleet(t, plan);
  t.diagnostic(JSON.stringify(figures));
  checkFleet(figures);
});
