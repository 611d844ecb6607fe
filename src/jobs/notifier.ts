/** Delivers notifications, a few at a time, beside everything else: neither a renewal nor a download ever waits for it. */

import { hour, second } from '../base/duration.ts';
import { Signal } from '../base/signal.ts';
import { claimDelivery } from '../domain/notifications/notification-claim.ts';
import {
  type DeliveryContext,
  deliver,
  tidyDeliveries,
} from '../domain/notifications/notification-delivery.ts';
import { type Task, TasksInHand } from './tasks-in-hand.ts';

/** By channel: a receiver that is slow or away must not hold up the others. */
const limits = { perGroup: 2, inAll: 10 };

/** How soon a delivery is noticed that another part, or another process, has queued. */
const lookAgainAfter = second;

/**
 * Runs until `signal` is aborted; what is under way is then given back, and the next process delivers it. What goes wrong
 * is logged and tried again.
 */
export async function runNotifier(vault: DeliveryContext, signal: AbortSignal): Promise<void> {
  const worker = `notifier-${vault.world.randomBytes(8).toString('hex')}`;
  const room = new Signal(vault.world);
  const inHand = new TasksInHand(limits, () => room.notify());
  let tidyAt = vault.world.now();
  while (!signal.aborted) {
    try {
      await inHand.fill(signal, (fullChannels) => takeUp(vault, worker, fullChannels, signal));
      const now = vault.world.now();
      // Also where the clock was set back.
      if (tidyAt <= now || tidyAt > now + hour) {
        const isMore = await tidyDeliveries(vault);
        tidyAt = now + (isMore ? second : hour);
      }
    } catch (error) {
      vault.log.error({ err: error }, 'notifications could not be taken up; trying again');
    }
    await room.wait(lookAgainAfter, signal);
  }
  await inHand.ended();
}

async function takeUp(
  vault: DeliveryContext,
  worker: string,
  exceptChannels: readonly number[],
  signal: AbortSignal,
): Promise<Task | undefined> {
  const claimed = await claimDelivery(vault, worker, exceptChannels);
  if (claimed === undefined) return undefined;
  const ended = deliver(vault, claimed, signal).then(
    () => undefined,
    (error: unknown) => {
      vault.log.error(
        { err: error },
        'how a notification was delivered could not be put down; it is sent again',
      );
    },
  );
  return { group: claimed.channel.id, ended };
}
