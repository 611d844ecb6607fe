/** Asks the CAs when to renew (RFC 9773), for each certificate as often as its CA says. */
import { minute } from '../base/duration.ts';
import type { LoggedContext } from '../domain/contexts.ts';
import type { CaContext } from '../domain/issuance/issuance-contexts.ts';
import type { QueueContext } from '../domain/renewals/renewal-queue.ts';
import { askDueWindows } from '../domain/renewals/renewal-windows.ts';
import { queueDueRenewals } from '../domain/renewals/renewals.ts';

/** More than are asked for in a minute wait for the next. */
const mostPerMinute = 100;

/** Runs until `signal` is aborted. What goes wrong is logged and tried again a minute later. */
export async function runWindowWatcher(
  vault: LoggedContext & QueueContext & CaContext,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const asked = await askDueWindows(vault, mostPerMinute, signal);
      // What a CA wants replaced now is not left to the scheduler's next minute.
      if (asked > 0 && !signal.aborted) await queueDueRenewals(vault, mostPerMinute);
    } catch (error) {
      vault.log.error({ err: error }, 'the renewal windows could not be looked up; trying again');
    }
    await vault.world.sleep(minute, signal);
  }
}
