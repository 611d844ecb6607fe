/** Deployments that need a person: clients fail, have an older version, or no longer report. */
import type { TimedContext } from '../contexts.ts';
import { countDeployments } from '../deployments/deployments.ts';
import type { Finding } from './finding.ts';

const check = 'deployments';

const meanings = {
  failing: 'failing: the last run, its reload or its verification failed',
  outdated: 'outdated: an older version is installed although the schedule is over',
  silent: 'silent: no report for two schedules',
} as const;

/** One finding per state that needs a person, or one that all are current; none without deployments. */
export async function deploymentFindings(vault: TimedContext): Promise<Finding[]> {
  const counts = await countDeployments(vault);
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (all === 0) return [];
  if (counts.current === all) {
    const message = all === 1 ? 'the only one is current' : `all ${all} are current`;
    return [{ check, status: 'ok', message }];
  }
  return (['failing', 'outdated', 'silent'] as const)
    .filter((state) => counts[state] > 0)
    .map((state) => ({
      check,
      status: 'warning',
      message: `${counts[state]} of ${all} ${counts[state] === 1 ? 'is' : 'are'} ${meanings[state]}`,
      hint: `Try: vault fleet status --state ${state}`,
    }));
}
