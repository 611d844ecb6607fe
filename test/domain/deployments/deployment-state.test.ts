/** The state of deployments: a table of reports and of what they mean at which time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import {
  type CurrentVersion,
  type DeploymentState,
  deploymentState,
  deploymentStates,
  type ReportedFacts,
  silentAt,
} from '../../../src/domain/deployments/deployment-state.ts';

const seen = Date.UTC(2026, 10, 21, 3, 17);

/** A client with a daily schedule that installed version 2 and reported success. */
const daily: ReportedFacts = {
  last_seen_at: seen,
  next_run_at: seen + day,
  version: 2,
  reload: 'ok',
  verify: 'ok',
  error: null,
  deploy_target_id: null,
};

const second: CurrentVersion = { version: 2, created_at: seen - 10 * day };

type Case = {
  readonly why: string;
  readonly facts?: Partial<ReportedFacts>;
  readonly current?: CurrentVersion | null;
  /** After the last report. */
  readonly after: number;
  readonly state: DeploymentState;
};

const third = (after: number): CurrentVersion => ({ version: 3, created_at: seen + after });

const cases: readonly Case[] = [
  { why: 'the current version is installed', after: 0, state: 'current' },
  {
    why: 'the certificate has no version',
    current: null,
    facts: { version: null },
    after: 0,
    state: 'current',
  },
  {
    why: 'a newer version than the current one is installed',
    facts: { version: 9 },
    after: 0,
    state: 'current',
  },
  {
    why: 'there is no reload command and no check',
    facts: { reload: null, verify: null },
    after: 0,
    state: 'current',
  },
  { why: 'the reload failed', facts: { reload: 'failed' }, after: 0, state: 'failing' },
  { why: 'the verification failed', facts: { verify: 'failed' }, after: 0, state: 'failing' },
  { why: 'the run failed before the reload', facts: { error: 'disk full' }, after: 0, state: 'failing' },
  {
    why: 'an older version is installed and the reload failed',
    facts: { reload: 'failed' },
    current: third(-5 * day),
    after: 0,
    state: 'failing',
  },
  {
    why: 'the new version is younger than the schedule',
    current: third(hour),
    after: 20 * hour,
    state: 'current',
  },
  {
    why: 'the grace after the schedule is not over',
    current: third(minute),
    after: day + hour + minute - 1,
    state: 'current',
  },
  {
    why: 'schedule and grace are over',
    current: third(minute),
    after: day + hour + minute,
    state: 'outdated',
  },
  {
    why: 'nothing is installed although a version is old',
    facts: { version: null },
    after: 0,
    state: 'outdated',
  },
  {
    why: 'an hourly job counts as a daily one for a new version',
    facts: { next_run_at: seen + hour },
    current: third(minute),
    after: 24 * hour,
    state: 'current',
  },
  {
    why: 'a weekly job has its whole week',
    facts: { next_run_at: seen + 7 * day },
    current: third(day),
    after: 7 * day,
    state: 'current',
  },
  {
    why: 'a weekly job missed its week',
    facts: { next_run_at: seen + 7 * day },
    current: third(day),
    after: 8 * day + hour,
    state: 'outdated',
  },
  { why: 'one report is missing', after: day + 2 * hour, state: 'current' },
  { why: 'two reports are missing but the grace is not over', after: 2 * day + hour - 1, state: 'current' },
  { why: 'two reports are missing', after: 2 * day + hour, state: 'silent' },
  { why: 'a failed job sent no report since', facts: { reload: 'failed' }, after: 3 * day, state: 'silent' },
  { why: 'an outdated job sent no report since', current: third(0), after: 3 * day, state: 'silent' },
  { why: 'the next run is unknown', facts: { next_run_at: null }, after: 2 * day + hour, state: 'silent' },
  {
    why: 'the clock of the client is slow, so its next run is in the past',
    facts: { next_run_at: seen - 300 * day },
    after: 2 * day,
    state: 'current',
  },
  {
    why: 'the clock of the client is fast by decades',
    facts: { next_run_at: seen + 9000 * day },
    after: 800 * day + hour,
    state: 'silent',
  },
  { why: 'the clock of the vault was set back', after: -30 * day, state: 'current' },
];

for (const { why, facts, current = second, after, state } of cases) {
  test(`a deployment is ${state} if ${why}`, () => {
    assert.equal(deploymentState({ ...daily, ...facts }, current, seen + after), state);
  });
}

test('the table of cases has each state', () => {
  assert.deepEqual(new Set(cases.map(({ state }) => state)), new Set(deploymentStates));
});

test('silentAt is the moment at which the state turns silent', () => {
  for (const next of [null, seen + hour, seen + day, seen + 9 * day]) {
    const facts = { ...daily, next_run_at: next };
    const at = silentAt(facts);
    assert.equal(deploymentState(facts, second, at - 1), 'current');
    assert.equal(deploymentState(facts, second, at), 'silent');
  }
});
