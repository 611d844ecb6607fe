/** Takes renewals off the queue and carries them out, a few at a time for each issuer and DNS provider, until it is told to stop. */
import { second } from '../base/duration.ts';
import type { Signal } from '../base/signal.ts';
import type { Heartbeat } from '../domain/health/heartbeat.ts';
import type { ClaimedRenewal, StopReason } from '../domain/issuance/attempt.ts';
import { claimRenewal, keepLease } from '../domain/renewals/renewal-claim.ts';
import { type RenewalContext, runRenewal } from '../domain/renewals/renewal-run.ts';
import { RenewalSlots } from './renewal-slots.ts';

type WorkerContext = RenewalContext & {
  readonly renewalEnded: Signal;
  readonly renewalHeartbeat: Heartbeat;
};

/** How soon a renewal is noticed that another process queued or left behind. */
const lookAgainAfter = second;

/**
 * Runs until `signal` is aborted; the renewals in hand are then given back to the queue as they stand. What goes wrong
 * is logged and tried again; the heartbeat stops when the queue cannot be read.
 */
export async function runRenewalWorker(vault: WorkerContext, signal: AbortSignal): Promise<void> {
  const worker = `worker-${vault.world.randomBytes(8).toString('hex')}`;
  const underWay = new RenewalSlots(() => {
    vault.renewalQueued.notify();
    vault.renewalEnded.notify();
  });
  while (!signal.aborted) {
    try {
      while (!signal.aborted && (await takeUp(vault, worker, underWay, signal)));
      vault.renewalHeartbeat.beat();
    } catch (error) {
      vault.log.error({ err: error }, 'the renewal queue cannot be read; trying again');
    }
    await vault.renewalQueued.wait(lookAgainAfter, signal);
  }
  await underWay.ended();
}

/**
 * Carries one renewal out, whoever claimed it, and keeps its lease meanwhile. Ends when it has ended, was given back
 * because `signal` was aborted, or belongs to another worker.
 */
export async function runClaimed(
  vault: RenewalContext,
  claimed: ClaimedRenewal,
  signal: AbortSignal,
): Promise<void> {
  const done = new AbortController();
  const stop = new AbortController();
  const shutDown = () => stop.abort('shutdown' satisfies StopReason);
  signal.addEventListener('abort', shutDown, { once: true });
  if (signal.aborted) shutDown();
  const lease = keepLease(vault, claimed, done.signal).then((lost) => {
    if (lost) stop.abort('lease lost' satisfies StopReason);
  });
  try {
    await runRenewal(vault, claimed, stop.signal);
  } catch (error) {
    vault.log.error({ err: error, renewal: claimed.renewal.id }, 'a renewal stopped; it is taken up again');
  } finally {
    signal.removeEventListener('abort', shutDown);
    done.abort();
    await lease;
  }
}

/** Begins the next renewal that there is room for. Returns whether there was one. */
async function takeUp(
  vault: RenewalContext,
  worker: string,
  underWay: RenewalSlots,
  signal: AbortSignal,
): Promise<boolean> {
  const claimed = await claimRenewal(vault, worker, {
    admits: (lane, waiting) => underWay.admits(lane, waiting),
  });
  if (claimed === undefined) return false;
  underWay.hold(claimed.lane, runClaimed(vault, claimed, signal));
  return true;
}
