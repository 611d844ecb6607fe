/** Queries the renewal windows of certificates (ARI, RFC 9773) as often as each CA says. */
import { minute } from '../base/duration.ts';
import type { LoggedContext } from '../domain/contexts.ts';
import type { CaContext } from '../domain/issuance-contexts.ts';
import type { QueueContext } from '../domain/renewals/renewal-queue.ts';
import { queueDueRenewals } from '../domain/renewals/renewals.ts';
import { queryDueWindows } from '../domain/schedule/renewal-windows.ts';

/** Certificates queried per minute; the others wait for the next round. */
const mostPerMinute = 100;

/** Runs until `signal` is aborted. Logs errors and retries a minute later. */
export async function runWindowWatcher(
  vault: LoggedContext & QueueContext & CaContext,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const updated = await queryDueWindows(vault, mostPerMinute, signal);
      // Queue early renewals that a CA asked for without waiting for the scheduler.
      if (updated > 0 && !signal.aborted) await queueDueRenewals(vault, mostPerMinute);
    } catch (error) {
      vault.log.error({ err: error }, 'failed to update renewal windows; retrying');
    }
    await vault.world.sleep(minute, signal);
  }
}
