/** Takes renewals off the queue and carries them out, a few at a time for each issuer, until it is told to stop. */
import { second } from '../base/duration.ts';
import type { ClaimedRenewal, StopReason } from '../domain/attempt.ts';
import { claimRenewal, keepLease } from '../domain/renewal-claim.ts';
import { runRenewal } from '../domain/renewal-run.ts';
import type { Vault } from '../domain/vault.ts';
import { type Task, TasksInHand } from './tasks-in-hand.ts';

/** By issuer. In all: each renewal in hand may hold a connection and a key being made. */
const limits = { perGroup: 10, inAll: 30 };

/** How soon a renewal is noticed that another process queued or left behind. */
const lookAgainAfter = second;

/**
 * Runs until `signal` is aborted; the renewals in hand are then given back to the queue as they stand. What goes wrong
 * is logged and tried again; the heartbeat stops when the queue cannot be read.
 */
export async function runRenewalWorker(vault: Vault, signal: AbortSignal): Promise<void> {
  const worker = `worker-${vault.world.randomBytes(8).toString('hex')}`;
  const inHand = new TasksInHand(limits, () => {
    vault.renewalQueued.ring();
    vault.renewalEnded.ring();
  });
  while (!signal.aborted) {
    try {
      await inHand.fill(signal, (fullIssuers) => takeUp(vault, worker, fullIssuers, signal));
      vault.renewalHeartbeat.beat();
    } catch (error) {
      vault.log.error({ err: error }, 'the renewal queue cannot be read; trying again');
    }
    await vault.renewalQueued.wait(lookAgainAfter, signal);
  }
  await inHand.ended();
}

/**
 * Carries one renewal out, whoever claimed it, and keeps its lease meanwhile. Ends when it has ended, was given back
 * because `signal` was aborted, or belongs to another worker.
 */
export async function carryOut(vault: Vault, claimed: ClaimedRenewal, signal: AbortSignal): Promise<void> {
  const done = new AbortController();
  const stop = new AbortController();
  const shutDown = () => stop.abort('shutdown' satisfies StopReason);
  signal.addEventListener('abort', shutDown, { once: true });
  if (signal.aborted) shutDown();
  const lease = keepLease(vault, claimed, done.signal).then(
    (lost) => {
      if (lost) stop.abort('lease lost' satisfies StopReason);
    },
    (error: unknown) => {
      vault.log.warn({ err: error, renewal: claimed.renewal.id }, 'the lease of a renewal could not be kept');
    },
  );
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

async function takeUp(
  vault: Vault,
  worker: string,
  exceptIssuers: readonly number[],
  signal: AbortSignal,
): Promise<Task | undefined> {
  const claimed = await claimRenewal(vault, worker, { exceptIssuers });
  if (claimed === undefined) return undefined;
  return { group: claimed.renewal.issuer_id ?? 0, ended: carryOut(vault, claimed, signal) };
}
