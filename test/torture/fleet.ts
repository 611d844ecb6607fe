/**
 * The chamber of many certificates: a fleet over four CAs and six DNS providers, with a share of it broken for ever,
 * one CA down for a day and one DNS provider for two. Every healthy certificate must be renewed in time, and no limit
 * be met.
 */
import assert from 'node:assert/strict';
import { day, hour, minute, second } from '../../src/base/duration.ts';
import { type FleetFigures, type FleetPlan, simulateFleet } from '../harness/fleet/fleet.ts';
import type { Chamber } from './chamber.ts';

/** The whole fleet; `dueWithin` says how dense its renewals are. */
export function fleetPlan(certificates: number, seed: string, dueWithin = 14 * day): FleetPlan {
  return {
    ...{
      certificates,
      seed,
      dueWithin,
      runs: dueWithin + 4 * day,
      broken: 0.05,
      twins: 0.04,
      maxNames: 100,
    },
    step: 5 * second,
    cas: [
      {
        directoryUrl: 'https://acme-v02.api.letsencrypt.org/directory',
        lifetime: 90 * day,
        hasRenewalInfo: true,
      },
      { directoryUrl: 'https://acme.second.test/directory', lifetime: 90 * day, hasRenewalInfo: true },
      { directoryUrl: 'https://acme.third.test/directory', lifetime: 45 * day, hasRenewalInfo: false },
      { directoryUrl: 'https://acme.short.test/directory', lifetime: 160 * hour, hasRenewalInfo: true },
    ],
    caDown: { ca: 1, from: dueWithin / 4, to: dueWithin / 4 + day },
    providers: [
      { kind: 'route53', presentMs: 45 * second, negativeTtlMs: 15 * minute },
      { kind: 'hook', presentMs: 90 * second, removeMs: 5 * second, negativeTtlMs: 5 * minute },
      // Its caches keep for an hour that a name does not exist, and its second server is late.
      { kind: 'api', presentMs: second, lagsMs: [0, 60 * second], negativeTtlMs: hour },
      { kind: 'api', presentMs: second, lagsMs: [5 * second, 5 * second], negativeTtlMs: 5 * minute },
      { kind: 'api', presentMs: 5 * second, lagsMs: [0, 0], negativeTtlMs: 5 * minute },
      { kind: 'api', presentMs: second, lagsMs: [0, 20 * second, 120 * second], negativeTtlMs: 5 * minute },
    ],
    providerDown: { provider: 3, from: dueWithin / 3, to: dueWithin / 3 + 2 * day },
  };
}

/** Throws where a healthy certificate was late or still waits, a limit was met, or a record stayed. */
export function checkFleet(figures: FleetFigures): void {
  const { late, expired, waiting, limitsMet, recordsLeft, due } = figures;
  assert.ok(due > 0, 'nothing was due');
  assert.deepEqual(
    { late, expired, waiting, limitsMet, recordsLeft },
    { late: 0, expired: 0, waiting: 0, limitsMet: [], recordsLeft: 0 },
    JSON.stringify(figures),
  );
}

export const fleet: Chamber = async ({ amount, say, chance }) => {
  const endings: (() => unknown)[] = [];
  const dueWithin = (amount('days') ?? 14) * day;
  const plan = {
    ...fleetPlan(amount('certificates') ?? 10_000, String(chance.whole(0, 1e9)), dueWithin),
    say,
  };
  try {
    const figures = await simulateFleet({ after: (end: () => unknown) => endings.push(end) } as never, plan);
    say(JSON.stringify(figures));
    checkFleet(figures);
    return Object.entries(figures).flatMap(([name, value]) =>
      typeof value === 'number' ? { name, value } : [],
    );
  } finally {
    for (const end of endings.reverse()) await end();
  }
};
