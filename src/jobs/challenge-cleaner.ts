/** Removes challenge records that crashes and failed removals left behind: at the start, and every half hour. */
import { minute } from '../base/duration.ts';
import { removeLeftoverChallenges } from '../domain/issuance/challenge-removal.ts';
import type { Vault } from '../domain/vault.ts';

const period = 30 * minute;

/**
 * Runs until `signal` is aborted, then stops the removals of this process that are still running. Logs errors and retries in
 * the next round.
 */
export async function runChallengeCleaner(vault: Vault, signal: AbortSignal): Promise<void> {
  const stop = () => void vault.removals.end();
  signal.addEventListener('abort', stop, { once: true });
  while (!signal.aborted) {
    try {
      const left = await removeLeftoverChallenges(vault);
      if (left > 0) vault.log.info({ records: left }, 'leftover challenge records removed');
    } catch (error) {
      vault.log.error(
        { err: error },
        'failed to remove leftover challenge records; retrying in half an hour',
      );
    }
    await vault.world.sleep(period, signal);
  }
  await vault.removals.end();
}
