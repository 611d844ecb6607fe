/** Endpoints that need a person: what they serve is not what clients need. */
import type { TimedContext } from '../contexts.ts';
import { countEndpoints } from '../endpoints/endpoints.ts';
import { stateMeanings } from '../notifications/notification-endpoint-text.ts';
import type { Finding } from './finding.ts';

const check = 'endpoints';

/** One finding per state that needs a person, or one that all are current; none without endpoints. */
export async function endpointFindings(vault: TimedContext): Promise<Finding[]> {
  const { unchecked, ...counts } = await countEndpoints(vault);
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (all === 0) return [];
  if (counts.current === all) {
    const message = all === 1 ? 'the only one is current' : `all ${all} are current`;
    return [{ check, status: 'ok', message }];
  }
  return (['unreachable', 'unknown', 'outdated', 'untrusted', 'expiring'] as const)
    .filter((state) => counts[state] > 0)
    .map((state) => ({
      check,
      status: 'warning',
      message: `${counts[state]} of ${all} ${counts[state] === 1 ? 'is' : 'are'} ${state}: ${stateMeanings[state]}`,
      hint: `Try: vault endpoint list --state ${state}`,
    }));
}
