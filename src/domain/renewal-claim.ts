/** Who works on a renewal: claims under a lease, kept fresh, lost or given back. */
import { minute, second } from '../base/duration.ts';
import { findClaimableRenewal, updateLeased, updateRenewal } from '../db/renewals.ts';
import type { ClaimedRenewal } from './attempt.ts';
import type { Vault } from './vault.ts';

/** A worker that has not been heard of for this long is dead, and its renewal goes to the next. */
export const leaseDuration = minute;

/** What of the queue is looked at: not the issuers that have all they can take, or one renewal alone. */
export type ClaimLimits = {
  readonly exceptIssuers?: readonly number[];
  readonly only?: number;
};

/**
 * Claims the oldest renewal that nobody works on and whose issuer is not paused, for a lease; undefined where there is
 * none. Each claim has an owner of its own, so that a lease that ran out (the clock may jump) is lost even to the same
 * worker's next claim.
 */
export async function claimRenewal(
  vault: Vault,
  worker: string,
  limits: ClaimLimits = {},
): Promise<ClaimedRenewal | undefined> {
  const { db, world } = vault;
  if ((await findClaimableRenewal(db.reader, world.now(), limits)) === undefined) return undefined;
  return db.write(async (writer) => {
    const now = world.now();
    const found = await findClaimableRenewal(writer, now, limits);
    if (found === undefined) return undefined;
    const owner = `${worker}/${found.id}/${found.claims + 1}`;
    const changes = {
      status: 'running' as const,
      claims: found.claims + 1,
      started_at: found.started_at ?? now,
      lease_owner: owner,
      lease_expires_at: now + leaseDuration,
    };
    await updateRenewal(writer, found.id, changes);
    return { renewal: { ...found, ...changes }, owner };
  });
}

/** Keeps the lease fresh until `signal` is aborted or the lease is lost. Returns whether it was lost. */
export async function keepLease(
  { db, world }: Vault,
  { renewal, owner }: ClaimedRenewal,
  signal: AbortSignal,
): Promise<boolean> {
  for (;;) {
    await world.sleep(20 * second, signal);
    if (signal.aborted) return false;
    const changes = { lease_expires_at: world.now() + leaseDuration };
    if (!(await db.write((writer) => updateLeased(writer, renewal.id, owner, changes)))) return true;
  }
}

/** Gives a renewal back to the queue as it stands, for whoever comes next; it does not count as a claim that failed. */
export async function releaseRenewal({ db }: Vault, { renewal, owner }: ClaimedRenewal): Promise<void> {
  await db.write((writer) =>
    updateLeased(writer, renewal.id, owner, {
      status: 'queued',
      claims: renewal.claims - 1,
      lease_owner: null,
      lease_expires_at: null,
    }),
  );
}
