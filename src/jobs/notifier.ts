/** Delivers notifications, a few at a time, beside everything else: neither a renewal nor a download ever waits for it. */
import { hour, second } from '../base/duration.ts';
import { claimDelivery } from '../domain/notification-claim.ts';
import { deliver, tidyDeliveries } from '../domain/notification-delivery.ts';
import type { Vault } from '../domain/vault.ts';

/** A receiver that is slow or away must not hold up the others. */
const perChannel = 2;
const inAll = 10;

/** How soon a delivery is noticed that another part, or another process, has queued. */
const lookAgainAfter = second;

/**
 * Runs until `signal` is aborted; what is under way is then given back, and the next process delivers it. What goes wrong
 * is logged and tried again.
 */
export async function runNotifier(vault: Vault, signal: AbortSignal): Promise<void> {
  const worker = `notifier-${vault.world.randomBytes(8).toString('hex')}`;
  const inHand = new Map<Promise<void>, number>();
  let tidyAt = vault.world.now();
  while (!signal.aborted) {
    try {
      await takeUp(vault, worker, inHand, signal);
      const now = vault.world.now();
      // Also where the clock was set back.
      if (tidyAt <= now || tidyAt > now + hour) {
        const isMore = await tidyDeliveries(vault);
        tidyAt = now + (isMore ? second : hour);
      }
    } catch (error) {
      vault.log.error({ err: error }, 'notifications could not be taken up; trying again');
    }
    await vault.world.sleep(lookAgainAfter, signal);
  }
  await Promise.all(inHand.keys());
}

async function takeUp(
  vault: Vault,
  worker: string,
  inHand: Map<Promise<void>, number>,
  signal: AbortSignal,
): Promise<void> {
  while (inHand.size < inAll && !signal.aborted) {
    const claimed = await claimDelivery(vault, worker, fullChannels(inHand));
    if (claimed === undefined) return;
    const task = deliver(vault, claimed, signal)
      .then(
        () => undefined,
        (error: unknown) => {
          vault.log.error(
            { err: error },
            'how a notification was delivered could not be put down; it is sent again',
          );
        },
      )
      .finally(() => {
        inHand.delete(task);
      });
    inHand.set(task, claimed.channel.id);
  }
}

/** Channels that have as many deliveries in hand as they may. */
function fullChannels(inHand: ReadonlyMap<unknown, number>): number[] {
  const counts = Map.groupBy(inHand.values(), (channel) => channel);
  return [...counts].filter(([, all]) => all.length >= perChannel).map(([channel]) => channel);
}
