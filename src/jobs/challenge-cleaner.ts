/** Removes challenge records that crashes and failed removals left behind: at the start, and every half hour. */
import { minute } from '../base/duration.ts';
import type { ChallengeContext } from '../domain/issuance-contexts.ts';
import { removeLeftoverChallenges } from '../domain/orders/challenge-removal.ts';

const period = 30 * minute;

/**
 * Runs until `signal` is aborted, then stops the removals of this process that are still running. Logs errors and retries in * the next round. A round that takes longer than that goes on beside the next, which leaves its records
 * to it: one provider that is slow must not delay the others.
 */
export async function runChallengeCleaner(vault: ChallengeContext, signal: AbortSignal): Promise<void> {
  const stop = () => void vault.removals.end();
  signal.addEventListener('abort', stop, { once: true });
  const rounds = new Set<Promise<void>>();
  while (!signal.aborted) {
    const round = removeLeftovers(vault).finally(() => rounds.delete(round));
    rounds.add(round);
    await vault.world.sleep(period, signal);
  }
  await vault.removals.end();
  await Promise.all(rounds);
}

async function removeLeftovers(vault: ChallengeContext): Promise<void> {
  try {
    const left = await removeLeftoverChallenges(vault);
    if (left > 0) vault.log.info({ records: left }, 'leftover challenge records removed');
  } catch (error) {
    vault.log.error({ err: error }, 'failed to remove leftover challenge records; retrying in half an hour');
  }
}
