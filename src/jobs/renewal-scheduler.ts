/** Queues the renewals whose moment has come, once a minute. */
import { minute } from '../base/duration.ts';
import { queueDueRenewals } from '../domain/renewals.ts';
import type { Vault } from '../domain/vault.ts';

/** More than are queued in a minute wait for the next. */
const mostPerMinute = 100;

/** Runs until `signal` is aborted. What goes wrong is logged and tried again a minute later. */
export async function runRenewalScheduler(vault: Vault, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const queued = await queueDueRenewals(vault, mostPerMinute);
      if (queued > 0) vault.log.info({ queued }, 'renewals queued because they are due');
    } catch (error) {
      vault.log.error({ err: error }, 'due renewals could not be queued; trying again');
    }
    await vault.world.sleep(minute, signal);
  }
}
