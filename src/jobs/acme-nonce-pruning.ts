/**
 * Prunes the used nonces of the ACME server every five minutes: at full speed there are hundreds of thousands of them in an hour.
 */
import { minute } from '../base/duration.ts';
import { pruneNonces } from '../domain/acme-server/orders/order-retention.ts';
import type { LoggedContext } from '../domain/contexts.ts';

const interval = 5 * minute;

/** Runs until `signal` is aborted. Logs errors and retries in the next round. */
export async function runNoncePruning(vault: LoggedContext, signal: AbortSignal): Promise<void> {
  const { world, log } = vault;
  while (!signal.aborted) {
    try {
      await pruneNonces(vault, signal);
    } catch (error) {
      log.error({ err: error }, 'failed to prune used ACME nonces; retrying in five minutes');
    }
    await world.sleep(interval, signal);
  }
}
