/** Notifies when deployments become failing, outdated or silent, and when they are current again. */
import { hour } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { NotifiedState } from '../../db/schema/schema-deployments.ts';
import {
  type DeploymentFacts,
  type ListedDeploymentRow,
  pageDeploymentFacts,
  pageDeployments,
  setNotifiedState,
} from '../../db/tables/deployments.ts';
import type { TimedContext } from '../contexts.ts';
import { failureOf, stateOf } from '../deployments/deployments.ts';
import { notifyChanges, type ScanCursor, type Watched } from './notification-changes.ts';
import { type DeploymentChange, placeOf } from './notification-deployment-text.ts';

/** A vault that was off took no reports, so it waits for them before it calls a deployment silent. */
export const patience = hour;

export type DeploymentCheck = {
  readonly cursor: ScanCursor;
  /** When the vault started, UTC milliseconds. */
  readonly since: number;
  /** How many rows to scan. */
  readonly most: number;
};

/** One check, as `notifyChanges` describes it. Returns the number of changes. */
export function notifyDeployments(
  vault: TimedContext,
  { cursor, since, most }: DeploymentCheck,
): Promise<number> {
  const deployments: Watched<NotifiedState, DeploymentFacts, ListedDeploymentRow, DeploymentChange> = {
    kind: 'deployment',
    scan: pageDeploymentFacts,
    find: (writer, ids) => pageDeployments(writer, { ids, after: 0, limit: ids.length }),
    noticeFor: (row, now) => noticeFor(row, now, since),
    changeOf,
    aboutOf: (change) => `${placeOf(change)} (${change.id})`,
    store: setNotifiedState,
  };
  return notifyChanges(vault, deployments, cursor, most);
}

/** What to notify about a deployment: null if it is current. */
function noticeFor(row: DeploymentFacts, now: number, since: number): NotifiedState | null {
  const state = stateOf(row, now);
  if (state === 'current') return null;
  const isEarly = state === 'silent' && now >= since && now - since < patience;
  return isEarly ? row.notified_state : state;
}

function changeOf(row: ListedDeploymentRow, next: NotifiedState | null): DeploymentChange {
  const { name, certificate, host, job, version, current_version, notified_state } = row;
  return {
    ...{ certificate, id: name, host, job },
    state: next ?? 'current',
    previous_state: notified_state ?? 'current',
    ...{ version, current_version },
    reason: next === 'failing' ? (failureOf(row) ?? null) : null,
    last_seen_at: formatTimestamp(row.last_seen_at),
  };
}
