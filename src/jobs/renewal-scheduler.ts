/**
 * Queues due renewals: once a minute, earlier if the next one is due earlier, and after each renewal of this process,
 * because certificates with short lifetimes may be due again within a minute.
 */
import { minute, second } from '../base/duration.ts';
import type { Signal } from '../base/signal.ts';
import type { LogContext } from '../domain/contexts.ts';
import { type QueueContext, redirectWaiting } from '../domain/renewals/renewal-queue.ts';
import { replanAll } from '../domain/renewals/renewal-replan.ts';
import { nextDueAt, queueDueRenewals } from '../domain/renewals/renewals.ts';
import { ClockHold } from '../domain/schedule/clock-hold.ts';
import { lastClockView } from '../domain/schedule/steady-clock.ts';

/** Renewals queued per round; the others wait for the next round. */
const maxPerRound = 100;

/** The clock jumped if it differs by more than this from the time slept. */
const jump = 5 * minute;

/** Runs until `signal` is aborted. Logs errors and retries a minute later. */
export async function runRenewalScheduler(
  vault: LogContext & QueueContext & { readonly renewalEnded: Signal },
  signal: AbortSignal,
): Promise<void> {
  const clock = new ClockHold(await lastClockView(vault.db.reader).catch(() => undefined));
  let isHeld = false;
  let expected: number | undefined;
  let mustReschedule = true;
  while (!signal.aborted) {
    const now = vault.world.now();
    let wait: number = minute;
    if (expected !== undefined && Math.abs(now - expected) > jump) mustReschedule = true;
    try {
      if (mustReschedule) {
        const replanned = await replanAll(vault);
        mustReschedule = false;
        if (replanned > 0) vault.log.info({ replanned }, 'renewals rescheduled');
      }
      const dueUntil = clock.dueUntil(now);
      if (clock.isHolding && !isHeld)
        vault.log.warn({}, 'clock jumped; delaying age-based renewals for an hour');
      isHeld = clock.isHolding;
      const queued = await queueDueRenewals(vault, maxPerRound, dueUntil);
      if (queued > 0) vault.log.info({ queued }, 'due renewals queued');
      const moved = await redirectWaiting(vault, maxPerRound);
      if (moved > 0) {
        vault.log.info({ moved }, 'queued renewals moved to another issuer');
        vault.renewalQueued.notify();
      }
      if (Number.isFinite(dueUntil)) wait = untilNext(await nextDueAt(vault, dueUntil), dueUntil, queued);
    } catch (error) {
      vault.log.error({ err: error }, 'failed to queue due renewals; retrying');
    }
    expected = vault.world.now() + wait;
    await vault.renewalEnded.wait(wait, signal);
  }
}

/** The time until the next renewal is due, at most a minute. */
function untilNext(moment: number | undefined, now: number, queued: number): number {
  if (moment === undefined || queued === maxPerRound) return minute;
  return Math.min(minute, Math.max(second, moment - now));
}
