/** The state of a deployment, derived from the clock and its last report, never stored. */
import { day, hour } from '../../base/duration.ts';

/** In the order of their precedence. */
export const deploymentStates = ['silent', 'failing', 'outdated', 'current'] as const;

export type DeploymentState = (typeof deploymentStates)[number];

/** How late a client may be: reports are delivered late, and clocks differ. In milliseconds, as all times here. */
export const grace = hour;

/** A client reports unchanged runs at most once a day, however often it runs. */
const shortestPeriod = day;

/** Longer than the schedule of a year. */
const longestPeriod = 400 * day;

/** What the last report says about the next one. */
type Schedule = {
  readonly last_seen_at: number;
  /** null if the client did not say. */
  readonly next_run_at: number | null;
};

/** What the state depends on. */
export type ReportedFacts = Schedule & {
  /** The version that is installed; null for none. */
  readonly version: number | null;
  readonly reload: 'ok' | 'failed' | null;
  readonly verify: 'ok' | 'failed' | null;
  readonly error: string | null;
  /** The target on which the vault itself installs; null for a client that reports. */
  readonly deploy_target_id: number | null;
};

/** The current version of the certificate, and since when the vault has it. */
export type CurrentVersion = { readonly version: number; readonly created_at: number };

/** The time within which the client reports again. */
function periodOf({ last_seen_at, next_run_at }: Schedule): number {
  const next = next_run_at === null ? 0 : next_run_at - last_seen_at;
  return Math.min(Math.max(next, shortestPeriod), longestPeriod);
}

/** When the deployment of a client becomes silent: after two schedules without a report. UTC milliseconds. */
export function silentAt(schedule: Schedule): number {
  return schedule.last_seen_at + 2 * periodOf(schedule) + grace;
}

/**
 * `silent` after two schedules without a report of a client: nothing else is known then. `failing` if the last run, its
 * reload or its verification failed. `outdated` if an older version is installed although the client had its whole
 * schedule to install `current`. Otherwise `current`, as without a current version (null).
 */
export function deploymentState(
  facts: ReportedFacts,
  current: CurrentVersion | null,
  now: number,
): DeploymentState {
  if (facts.deploy_target_id === null && now >= silentAt(facts)) return 'silent';
  if (facts.reload === 'failed' || facts.verify === 'failed' || facts.error !== null) return 'failing';
  if (current === null || (facts.version ?? 0) >= current.version) return 'current';
  return now >= current.created_at + periodOf(facts) + grace ? 'outdated' : 'current';
}
