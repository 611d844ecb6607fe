/**
 * Queues the renewals whose moment has come: once a minute, sooner where the next moment is sooner, and after each renewal
 * of this process, which may be due again within the minute where lifetimes are short.
 */
import { minute, second } from '../base/duration.ts';
import type { Signal } from '../base/signal.ts';
import type { LogContext } from '../domain/contexts.ts';
import { type QueueContext, redirectWaiting } from '../domain/renewals/renewal-queue.ts';
import { replanAll } from '../domain/renewals/renewal-replan.ts';
import { nextDueAt, queueDueRenewals } from '../domain/renewals/renewals.ts';

/** More than are queued in a minute wait for the next. */
const mostPerRound = 100;

/** A clock that is off by more than this from what was slept has jumped. */
const jump = 5 * minute;

/** Runs until `signal` is aborted. What goes wrong is logged and tried again a minute later. */
export async function runRenewalScheduler(
  vault: LogContext & QueueContext & { readonly renewalEnded: Signal },
  signal: AbortSignal,
): Promise<void> {
  let expected: number | undefined;
  let mayBeWrong = true;
  while (!signal.aborted) {
    const now = vault.world.now();
    let wait: number = minute;
    if (expected !== undefined && Math.abs(now - expected) > jump) mayBeWrong = true;
    try {
      if (mayBeWrong) {
        const replanned = await replanAll(vault);
        mayBeWrong = false;
        if (replanned > 0) vault.log.info({ replanned }, 'renewals planned anew');
      }
      const queued = await queueDueRenewals(vault, mostPerRound);
      if (queued > 0) vault.log.info({ queued }, 'renewals queued because they are due');
      const moved = await redirectWaiting(vault, mostPerRound);
      if (moved > 0) {
        vault.log.info({ moved }, 'waiting renewals moved to the other issuer');
        vault.renewalQueued.notify();
      }
      wait = untilNext(await nextDueAt(vault, now), now, queued);
    } catch (error) {
      vault.log.error({ err: error }, 'due renewals could not be queued; trying again');
    }
    expected = vault.world.now() + wait;
    await vault.renewalEnded.wait(wait, signal);
  }
}

/** A minute, or until the next moment where that comes sooner. */
function untilNext(moment: number | undefined, now: number, queued: number): number {
  if (moment === undefined || queued === mostPerRound) return minute;
  return Math.min(minute, Math.max(second, moment - now));
}
