/** Runs queued renewals, with limits per issuer and DNS provider. */
import { second } from '../base/duration.ts';
import type { Signal } from '../base/signal.ts';
import type { Heartbeat } from '../domain/health/heartbeat.ts';
import { endDeadLeases } from '../domain/nodes/lease-owners.ts';
import type { StopReason } from '../domain/orders/order-progress.ts';
import type { ClaimedRenewal } from '../domain/renewals/attempt.ts';
import { claimRenewal, keepLease } from '../domain/renewals/renewal-claim.ts';
import { type RenewalContext, runRenewal } from '../domain/renewals/renewal-run.ts';
import { RenewalSlots } from './renewal-slots.ts';

type WorkerContext = RenewalContext & {
  readonly renewalEnded: Signal;
  readonly renewalHeartbeat: Heartbeat;
};

/** How soon the worker notices a renewal that another process queued or abandoned. */
const pollInterval = second;

/**
 * Runs until `signal` is aborted; running renewals then return to the queue with their progress. Logs errors and
 * retries; the heartbeat stops while the queue cannot be read.
 */
export async function runRenewalWorker(vault: WorkerContext, signal: AbortSignal): Promise<void> {
  const worker = `worker-${vault.world.randomBytes(8).toString('hex')}`;
  const running = new RenewalSlots(() => {
    vault.renewalQueued.notify();
    vault.renewalEnded.notify();
  });
  while (!signal.aborted) {
    try {
      const left = await endDeadLeases(vault);
      if (left > 0) vault.log.info({ leases: left }, 'leases of dead processes ended; resuming their work');
      while (!signal.aborted && (await startNext(vault, worker, running, signal)));
      vault.renewalHeartbeat.beat();
    } catch (error) {
      vault.log.error({ err: error }, 'failed to read the renewal queue; retrying');
    }
    await vault.renewalQueued.wait(pollInterval, signal);
  }
  await running.ended();
}

/**
 * Runs a claimed renewal and keeps its lease fresh. Resolves when the renewal has ended, was released because `signal`
 * was aborted, or was lost to another worker.
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
    vault.log.error({ err: error, renewal: claimed.renewal.id }, 'renewal interrupted; retrying');
  } finally {
    signal.removeEventListener('abort', shutDown);
    done.abort();
    await lease;
  }
}

/** Starts the next renewal that has a free slot. Returns whether there was one. */
async function startNext(
  vault: RenewalContext,
  worker: string,
  running: RenewalSlots,
  signal: AbortSignal,
): Promise<boolean> {
  const claimed = await claimRenewal(vault, worker, {
    admits: (lane, waiting) => running.admits(lane, waiting),
  });
  if (claimed === undefined) return false;
  running.hold(claimed.lane, runClaimed(vault, claimed, signal));
  return true;
}
