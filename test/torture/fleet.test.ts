/** The short form of the fleet simulation. */
import { test } from 'node:test';
import { day } from '../../src/base/duration.ts';
import { simulateFleet } from '../harness/fleet.ts';
import { checkFleet, fleetPlan } from './fleet.ts';

test('a small fleet is renewed in time beside CAs and DNS providers that fail, and meets no limit', async (t) => {
  const plan = { ...fleetPlan(40, 'short', day), runs: 2.6 * day, mostNames: 6 };
  const figures = await simulateFleet(t, plan);
  t.diagnostic(JSON.stringify(figures));
  checkFleet(figures);
});
