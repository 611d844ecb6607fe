/** Takes down the challenge records that crashes and failed removals left: at the start, and once an hour. */
import { hour } from '../base/duration.ts';
import { removeLeftoverChallenges } from '../domain/challenge-removal.ts';
import type { Vault } from '../domain/vault.ts';

/** Runs until `signal` is aborted. What goes wrong is logged and tried again an hour later. */
export async function runChallengeCleaner(vault: Vault, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const left = await removeLeftoverChallenges(vault);
      if (left > 0) vault.log.info({ records: left }, 'left-over challenge records looked through');
    } catch (error) {
      vault.log.error({ err: error }, 'left-over challenge records could not be removed; trying again');
    }
    await vault.world.sleep(hour, signal);
  }
}
