/** Takes renewals off the queue and carries them out, a few at a time, until it is told to stop. */
import { second } from '../base/duration.ts';
import { type ClaimedRenewal, claimRenewal, keepLease, runRenewal } from '../domain/renewal-run.ts';
import type { Vault } from '../domain/vault.ts';

/** An issuer is asked for this many certificates at a time. */
const concurrency = 4;

/** How soon a renewal is noticed that another process queued or left behind. */
const lookAgainAfter = second;

/**
 * Runs until `signal` is aborted, then ends when the renewals in hand have ended. What goes wrong is logged and tried
 * again; the heartbeat stops when the queue cannot be read.
 */
export async function runRenewalWorker(vault: Vault, signal: AbortSignal): Promise<void> {
  const worker = `worker-${vault.world.randomBytes(8).toString('hex')}`;
  const inHand = new Set<Promise<void>>();
  while (!signal.aborted) {
    try {
      await takeUp(vault, worker, inHand);
      vault.renewalHeartbeat.beat();
    } catch (error) {
      vault.log.error({ err: error }, 'the renewal queue cannot be read; trying again');
    }
    await vault.renewalQueued.wait(lookAgainAfter, signal);
  }
  await Promise.all(inHand);
}

async function takeUp(vault: Vault, worker: string, inHand: Set<Promise<void>>): Promise<void> {
  while (inHand.size < concurrency) {
    const claimed = await claimRenewal(vault, worker);
    if (claimed === undefined) return;
    const task = carryOut(vault, claimed).finally(() => {
      inHand.delete(task);
      vault.renewalQueued.ring();
    });
    inHand.add(task);
  }
}

async function carryOut(vault: Vault, claimed: ClaimedRenewal): Promise<void> {
  const done = new AbortController();
  const lease = keepLease(vault, claimed, done.signal).catch((error: unknown) => {
    vault.log.warn({ err: error, renewal: claimed.renewal.id }, 'the lease of a renewal could not be kept');
  });
  try {
    await runRenewal(vault, claimed);
  } catch (error) {
    vault.log.error({ err: error, renewal: claimed.renewal.id }, 'a renewal stopped; it is taken up again');
  } finally {
    done.abort();
    await lease;
  }
}
