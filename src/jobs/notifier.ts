/** Delivers notifications in the background, a few at a time. No renewal or download waits for a delivery. */

import { hour, second } from '../base/duration.ts';
import { Signal } from '../base/signal.ts';
import { claimDelivery } from '../domain/notifications/notification-claim.ts';
import {
  type DeliveryContext,
  deliver,
  pruneDeliveries,
} from '../domain/notifications/notification-delivery.ts';
import { type Task, TasksInHand } from './tasks-in-hand.ts';

/** Per channel, so that a slow or unreachable receiver does not hold up the others. */
const limits = { perGroup: 2, inAll: 10 };

/** How soon the notifier notices a newly queued delivery. */
const pollInterval = second;

/**
 * Runs until `signal` is aborted; deliveries in progress then return to the queue for the next process. Logs errors and
 * retries.
 */
export async function runNotifier(vault: DeliveryContext, signal: AbortSignal): Promise<void> {
  const worker = `notifier-${vault.world.randomBytes(8).toString('hex')}`;
  const room = new Signal(vault.world);
  const inHand = new TasksInHand(limits, () => room.notify());
  let pruneAt = vault.world.now();
  while (!signal.aborted) {
    try {
      await inHand.fill(signal, (fullChannels) => startNext(vault, worker, fullChannels, signal));
      const now = vault.world.now();
      // The second condition holds if the clock was set back.
      if (pruneAt <= now || pruneAt > now + hour) {
        const isMore = await pruneDeliveries(vault);
        pruneAt = now + (isMore ? second : hour);
      }
    } catch (error) {
      vault.log.error({ err: error }, 'failed to read the notification queue; retrying');
    }
    await room.wait(pollInterval, signal);
  }
  await inHand.ended();
}

async function startNext(
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
      vault.log.error({ err: error }, 'failed to record the delivery of a notification; sending it again');
    },
  );
  return { group: claimed.channel.id, ended };
}
