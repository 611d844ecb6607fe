/** Deployments by host: counts, search, filter and order. */
import type { Deployment, DeploymentState } from '../data/shapes.ts';
import { searchFor } from '../text/search.ts';

/** From the state that needs attention first. */
export const deploymentStates = ['failing', 'silent', 'outdated', 'current'] as const;

export type Host = {
  readonly name: string;
  readonly jobs: readonly Deployment[];
  readonly counts: Readonly<Record<DeploymentState, number>>;
  /** The state of its jobs that needs attention first. */
  readonly worst: DeploymentState;
  /** When one of its jobs reported last, RFC 3339. */
  readonly lastSeen: string;
};

const collator = new Intl.Collator(undefined, { numeric: true });

/** The number of deployments in each state. */
export function countsOf(deployments: readonly Deployment[]): Record<DeploymentState, number> {
  const counts = { failing: 0, silent: 0, outdated: 0, current: 0 };
  for (const { state } of deployments) counts[state] += 1;
  return counts;
}

/** The hosts of these deployments: those that need attention first, then by name. */
export function hostsOf(deployments: readonly Deployment[]): Host[] {
  const hosts = [...Map.groupBy(deployments, ({ host }) => host)].map(([name, jobs]) => {
    const counts = countsOf(jobs);
    return {
      ...{ name, jobs, counts },
      worst: deploymentStates.find((state) => counts[state] > 0) ?? 'current',
      lastSeen: lastOf(jobs.map(({ last_seen_at }) => last_seen_at)),
    };
  });
  return hosts.sort((one, other) => rank(one.worst) - rank(other.worst) || byText(one.name, other.name));
}

/** The texts alone do not tell: a fraction of a second is left out where it is zero. */
function lastOf(times: readonly string[]): string {
  return times.reduce((last, at) => (Date.parse(at) > Date.parse(last) ? at : last));
}

/** Deployments that need attention first, then by host, certificate and job. */
export function sortedDeployments(deployments: readonly Deployment[]): Deployment[] {
  return deployments.toSorted(
    (one, other) =>
      rank(one.state) - rank(other.state) ||
      byText(one.host, other.host) ||
      byText(one.certificate, other.certificate) ||
      byText(one.job, other.job),
  );
}

export type FleetFilter = { readonly search: string; readonly state: string };

/**
 * The hosts with a job in the state, for `current` those with no job in another one, that have all words of the search.
 */
export function filteredHosts(hosts: readonly Host[], { search, state }: FleetFilter): Host[] {
  const matches = search === '' ? () => true : searchFor(search);
  return hosts.filter(
    (host) =>
      isInState(host, state) && matches([host.name, ...host.jobs.map(({ certificate }) => certificate)]),
  );
}

function isInState({ counts, worst }: Host, state: string): boolean {
  if (state === '') return true;
  return state === 'current' ? worst === 'current' : counts[state as DeploymentState] > 0;
}

/** The deployments in the state that have all words of the search. */
export function filteredDeployments(
  deployments: readonly Deployment[],
  { search, state }: FleetFilter,
): Deployment[] {
  const matches = search === '' ? () => true : searchFor(search);
  return deployments.filter(
    (one) =>
      (state === '' || one.state === state) && matches([one.host, one.certificate, one.job, one.destination]),
  );
}

/** "2 failing, 1 current". */
export function countsText(counts: Host['counts']): string {
  return deploymentStates
    .filter((state) => counts[state] > 0)
    .map((state) => `${counts[state].toLocaleString()} ${state}`)
    .join(', ');
}

/** "1 job", "3 jobs". */
export function jobsText(count: number): string {
  return count === 1 ? '1 job' : `${count.toLocaleString()} jobs`;
}

/** "1 host", "3 hosts". */
export function hostsText(count: number): string {
  return count === 1 ? '1 host' : `${count.toLocaleString()} hosts`;
}

function rank(state: DeploymentState): number {
  return deploymentStates.indexOf(state);
}

function byText(one: string, other: string): number {
  // Most texts are compared with themselves: the certificates of one host, or the hosts of one certificate.
  return one === other ? 0 : collator.compare(one, other);
}
