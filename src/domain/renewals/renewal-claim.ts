/** Claims renewals under a lease, keeps the lease fresh and releases it. */
import { minute, second } from '../../base/duration.ts';
import {
  type Lane,
  type LaneHead,
  listLaneHeads,
  listLeftRenewals,
} from '../../db/tables/renewals/renewal-lanes.ts';
import { findClaimableRenewal, updateLeased, updateRenewal } from '../../db/tables/renewals/renewals.ts';
import type { DatabaseContext, LoggedContext, TimedContext } from '../contexts.ts';
import type { OwnersContext } from '../nodes/lease-owners.ts';
import { holdOn } from '../orders/issuance-limits.ts';
import { maxPause } from '../schedule/renewal-policy.ts';
import type { ClaimedRenewal } from './attempt.ts';

/**
 * A worker that does not refresh its lease for this long counts as dead, and another one takes the renewal. If the
 * death of a process can be detected, `endDeadLeases` ends its leases earlier.
 */
export const leaseDuration = minute;

const refreshEvery = 20 * second;

/** Delay after a failed refresh. */
const retryEvery = 2 * second;

/** Renewals of one lane that a single claim may put on hold, so that a long lane does not delay the others. */
const maxHolds = 10;

/** `admits` says which lanes the worker has free slots for; `only` claims this one renewal. */
export type ClaimLimits = {
  readonly admits?: ((lane: Lane, waiting: readonly Lane[]) => boolean) | undefined;
  readonly only?: number;
};

/** The issuer and the DNS provider by which renewals share slots. */
export type RenewalLane = Lane;

/** A claimed renewal with its lane. */
export type ClaimedInLane = ClaimedRenewal & { readonly lane: Lane };

/**
 * Claims the most urgent renewal that is unclaimed, not held back by a rate limit and whose issuer is not paused;
 * undefined if there is none. Each claim has a unique owner name, so an expired lease is lost even to the next claim of
 * the same worker.
 */
export async function claimRenewal(
  vault: TimedContext & OwnersContext,
  worker: string,
  { admits = () => true, only }: ClaimLimits = {},
): Promise<ClaimedInLane | undefined> {
  const holds = new Map<string, number>();
  const laneOf = ({ issuer_id, dns_lane }: Lane) => `${issuer_id}/${dns_lane}`;
  for (;;) {
    const heads = await headsOf(vault, only);
    const mayHold = (lane: Lane) => (holds.get(laneOf(lane)) ?? 0) < maxHolds;
    const head = heads.find((one) => mayHold(one) && admits(one, heads));
    if (head === undefined) return undefined;
    if (await hold(vault, head.id)) {
      holds.set(laneOf(head), (holds.get(laneOf(head)) ?? 0) + 1);
      continue;
    }
    const claimed = await take(vault, vault.owners.named(worker), head.id);
    if (claimed !== undefined) return { ...claimed, lane: head };
  }
}

/** Puts the renewal on hold if a rate limit of the CA applies to it. Returns whether one does. */
async function hold({ db, world }: TimedContext, id: number): Promise<boolean> {
  const now = world.now();
  const found = await findClaimableRenewal(db.reader, id, now);
  const held = found?.status === 'queued' ? await holdOn(db.reader, found, now) : undefined;
  if (held === undefined) return false;
  const held_until = Math.min(held.until, now + maxPause);
  await db.write((writer) => updateRenewal(writer, id, { held_until, hold_reason: held.reason }));
  return true;
}

async function headsOf({ db, world }: TimedContext, only: number | undefined): Promise<LaneHead[]> {
  const now = world.now();
  if (only !== undefined) {
    const row = await findClaimableRenewal(db.reader, only, now);
    return row === undefined ? [] : [{ ...row, is_acme: 1, is_by_hand: 0 }];
  }
  return [...(await listLeftRenewals(db.reader, now)), ...(await listLaneHeads(db.reader, now))];
}

async function take(
  { db, world }: TimedContext,
  worker: string,
  id: number,
): Promise<ClaimedRenewal | undefined> {
  return db.write(async (writer) => {
    const now = world.now();
    const found = await findClaimableRenewal(writer, id, now);
    if (found === undefined) return undefined;
    const owner = `${worker}/${found.id}/${found.claims + 1}`;
    const changes = {
      status: 'running' as const,
      claims: found.claims + 1,
      started_at: found.started_at ?? now,
      lease_owner: owner,
      lease_expires_at: now + leaseDuration,
      held_until: null,
      hold_reason: null,
    };
    await updateRenewal(writer, found.id, changes);
    return { renewal: { ...found, ...changes }, owner };
  });
}

/**
 * Keeps the lease fresh until `signal` is aborted or the lease is lost. Returns whether it was lost. A lease that
 * cannot be written until it expires is lost too, because another worker may claim the renewal then.
 */
export async function keepLease(
  { db, world, log }: LoggedContext,
  { renewal, owner }: ClaimedRenewal,
  signal: AbortSignal,
): Promise<boolean> {
  let expiresAt = renewal.lease_expires_at ?? world.now() + leaseDuration;
  let wait: number = refreshEvery;
  for (;;) {
    await world.sleep(wait, signal);
    if (signal.aborted) return false;
    const lease_expires_at = world.now() + leaseDuration;
    try {
      const isKept = await db.write((writer) =>
        updateLeased(writer, renewal.id, owner, { lease_expires_at }),
      );
      if (!isKept) return true;
      expiresAt = lease_expires_at;
      wait = refreshEvery;
    } catch (error) {
      log.warn({ err: error, renewal: renewal.id }, 'failed to refresh the lease of a renewal; retrying');
      if (world.now() >= expiresAt) return true;
      wait = Math.min(retryEvery, expiresAt - world.now());
    }
  }
}

/** Returns a renewal to the queue with its progress; the claim does not count as an interrupted one. */
export async function releaseRenewal(
  { db }: DatabaseContext,
  { renewal, owner }: ClaimedRenewal,
): Promise<void> {
  await db.write((writer) =>
    updateLeased(writer, renewal.id, owner, {
      status: 'queued',
      claims: renewal.claims - 1,
      lease_owner: null,
      lease_expires_at: null,
    }),
  );
}
