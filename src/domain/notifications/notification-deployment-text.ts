/** The texts about deployments that became failing, outdated or silent, and about those that are current again. */
import type { NotifiedState } from '../../db/schema/schema-deployments.ts';
import { type Data, fact, section, type Words } from './notification-set-aside.ts';

/** A change of one deployment, as receivers see it. */
export type DeploymentChange = {
  readonly certificate: string;
  /** The client's id, unique per certificate. */
  readonly id: string;
  readonly host: string;
  readonly job: string;
  readonly state: NotifiedState | 'current';
  /** The state that was notified before. */
  readonly previous_state: NotifiedState | 'current';
  readonly version: number | null;
  readonly current_version: number | null;
  /** What failed; null for other states. */
  readonly reason: string | null;
  /** RFC 3339. */
  readonly last_seen_at: string;
};

/** The data of a notice: the first changes of a check, and how many there are in each state. */
export type DeploymentChanges = {
  readonly counts: Readonly<Partial<Record<DeploymentChange['state'], number>>>;
  readonly deployments: readonly DeploymentChange[];
};

const meanings: Readonly<Record<NotifiedState, string>> = {
  failing: 'Failing: the last run, its reload or its verification failed',
  outdated: 'Outdated: an older version although the schedule is over',
  silent: 'Silent: no report for two schedules',
};

/** The text about deployments that became failing, outdated or silent. */
export function unhealthyWords(data: Data): Words {
  const { counts, deployments } = data as unknown as DeploymentChanges;
  const states = (Object.keys(meanings) as NotifiedState[]).filter((state) => (counts[state] ?? 0) > 0);
  const all = totalOf(counts);
  const [first] = deployments;
  const list = states.map((state) => `${counts[state]} ${state}`).join(', ');
  return {
    subject:
      all === 1 && first !== undefined
        ? `${placeOf(first)}: ${first.state}${first.reason === null ? '' : `, ${first.reason}`}`
        : `${all} deployments need attention: ${list}`,
    lines: [
      ...states.flatMap((state) =>
        section(
          meanings[state],
          deployments.filter((one) => one.state === state).map(changeText),
          counts[state],
        ),
      ),
      '',
      'List them, and what to do about each:',
      '',
      ...states.map((state) => `  vault fleet status --state ${state}`),
    ].slice(1),
  };
}

/** The text about deployments that are current again. */
export function healthyWords(data: Data): Words {
  const { counts, deployments } = data as unknown as DeploymentChanges;
  const all = totalOf(counts);
  const [first] = deployments;
  if (all === 1 && first !== undefined) {
    return {
      subject: `${placeOf(first)}: current again`,
      lines: [
        `Certificate ${first.certificate} on host ${first.host} is current again.`,
        '',
        ...fact('Job', first.job),
        ...fact('Version', first.version),
        ...fact('Was', first.previous_state),
      ],
    };
  }
  return {
    subject: `${all} deployments are current again`,
    lines: section('Current again', deployments.map(changeText), all).slice(1),
  };
}

function totalOf(counts: DeploymentChanges['counts']): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** `web on www1` */
export function placeOf({ certificate, host }: Pick<DeploymentChange, 'certificate' | 'host'>): string {
  return `${certificate} on ${host}`;
}

function changeText(change: DeploymentChange): string {
  const { state, reason, version, current_version: current, last_seen_at: seen } = change;
  const more: Readonly<Record<DeploymentChange['state'], string | null>> = {
    failing: reason,
    outdated: `version ${version ?? 'none'} of ${current}`,
    silent: `last seen ${seen}`,
    current: `was ${change.previous_state}`,
  };
  return `${placeOf(change)} (${change.job})${more[state] === null ? '' : `: ${more[state]}`}`;
}
