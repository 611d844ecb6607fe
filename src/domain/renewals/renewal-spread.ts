/** Renewals of many certificates, spread over time so that no CA gets all orders together. */
import { day, minute } from '../../base/duration.ts';
import type { Writer } from '../../db/database.ts';
import { type CertificateRow, findCertificate } from '../../db/tables/certificates/certificates.ts';
import { findAcmeIssuer } from '../../db/tables/issuance/issuers.ts';
import { findOpenRenewal, updateRenewal } from '../../db/tables/renewals/renewals.ts';
import { lastHold } from '../../db/tables/renewals/waiting-renewals.ts';
import type { Actor } from '../audit/audit.ts';
import { type QueueContext, queueRenewal, spreadReason } from './renewal-queue.ts';

/** The time between two orders at one CA; shorter if they would not all start within the longest spread. */
const defaultPause = minute;
const maxSpread = day;

/** Certificates per transaction, so that other writes can run in between. */
const atOnce = 100;

export type SpreadRenewals = {
  readonly queued: number;
  /** Certificates that have an open renewal, which stays as it is. */
  readonly alreadyOpen: number;
  /** When the last one may start, in UTC milliseconds; undefined if all may start now. */
  readonly lastAt: number | undefined;
};

export type SpreadOptions = {
  /** Whether renewals at private CAs are spread too, so that clients do not all download at the same time. */
  readonly alsoPrivate?: boolean;
};

/**
 * Queues a renewal of each of these certificates, in this order: one per minute at each ACME CA, immediately at private
 * CAs, and none later than scheduled. Skips certificates that cannot be renewed, or were deleted meanwhile.
 */
export async function requestRenewals(
  vault: QueueContext,
  actor: Actor,
  names: readonly string[],
  options: SpreadOptions = {},
): Promise<SpreadRenewals> {
  const pause = Math.min(defaultPause, maxSpread / Math.max(1, names.length));
  const spread = new Spread(vault.world.now(), pause, options);
  let queued = 0;
  let alreadyOpen = 0;
  for (let from = 0; from < names.length; from += atOnce) {
    await vault.db.write(async (writer) => {
      for (const name of names.slice(from, from + atOnce)) {
        const certificate = await findCertificate(writer, name);
        if (certificate === undefined || certificate.issuer_id === null) continue;
        if (certificate.disabled_at !== null || certificate.acme_client_id !== null) continue;
        if ((await findOpenRenewal(writer, certificate.id)) !== undefined) alreadyOpen += 1;
        else {
          const { id, issuer_id } = await queueRenewal(vault, writer, actor, certificate);
          const held_until = await spread.next(writer, certificate, issuer_id);
          if (held_until !== null) await updateRenewal(writer, id, { held_until, hold_reason: spreadReason });
          queued += 1;
        }
      }
    });
    await vault.world.turn();
  }
  if (queued > 0) vault.renewalQueued.notify();
  return { queued, alreadyOpen, lastAt: spread.lastAt };
}

/** Assigns start times for one request, per directory of an ACME CA and per private CA. */
class Spread {
  readonly #now: number;
  readonly #pause: number;
  readonly #nextAt = new Map<string, number>();
  readonly #alsoPrivate: boolean;
  lastAt: number | undefined;

  constructor(now: number, pause: number, { alsoPrivate = false }: SpreadOptions) {
    this.#now = now;
    this.#pause = pause;
    this.#alsoPrivate = alsoPrivate;
  }

  /** When the renewal may start; null for now. */
  async next(
    writer: Writer,
    { next_renewal_at: scheduledAt }: CertificateRow,
    issuerId: number | null,
  ): Promise<number | null> {
    const ca = issuerId === null ? undefined : await findAcmeIssuer(writer, issuerId);
    if (ca === undefined && !this.#alsoPrivate) return null;
    const queue = ca?.directory_url ?? `private CA ${issuerId}`;
    const first = async () => (ca === undefined ? this.#now : await this.#first(writer, ca.directory_url));
    const at = this.#nextAt.get(queue) ?? (await first());
    this.#nextAt.set(queue, at + this.#pause);
    const start = Math.floor(Math.min(at, this.#now + maxSpread, scheduledAt ?? Number.POSITIVE_INFINITY));
    if (start <= this.#now) return null;
    this.lastAt = Math.max(this.lastAt ?? start, start);
    return start;
  }

  /** Starts after the waiting renewals of an earlier request. */
  async #first(writer: Writer, directoryUrl: string): Promise<number> {
    const before = await lastHold(writer, directoryUrl, spreadReason);
    return before === null ? this.#now : Math.max(this.#now, before + this.#pause);
  }
}
