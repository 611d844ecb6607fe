/** Queries about the queue of renewals as a whole: what waits for too long, and the recent results of an issuer. */
import { sql } from 'kysely';
import type { Identifier } from '../../../base/identifier.ts';
import type { Json } from '../../../base/json.ts';
import type { Reader } from '../../database.ts';
import type { IdRange } from '../id-ranges.ts';
import { findRenewal, isOpen, type RenewalRow } from './renewals.ts';

/**
 * A renewal that was queued, or whose worker last reported, before `since`, and that no worker claims at
 * `now` although neither a pause of its issuer nor a limit holds it back; undefined while a worker is busy
 * and has it in its queue.
 */
export async function findNeglectedRenewal(
  reader: Reader,
  now: number,
  since: number,
): Promise<RenewalRow | undefined> {
  const oldest = await reader
    .selectFrom('renewals')
    .select('id')
    .where(isOpen)
    .where('requested_at', '<', since)
    .where(({ or, eb }) => or([eb('held_until', 'is', null), eb('held_until', '<=', now)]))
    .where(({ or, eb }) => or([eb('status', '=', 'queued'), eb('lease_expires_at', '<', since)]))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('renewals as others')
            .select('others.id')
            .where(sql<boolean>`others.status = 'running'`)
            .where('others.lease_expires_at', '>', now),
        ),
      ),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('acme_issuers')
            .select('acme_issuers.issuer_id')
            .whereRef('acme_issuers.issuer_id', '=', 'renewals.issuer_id')
            .where('acme_issuers.paused_until', '>', now),
        ),
      ),
    )
    .orderBy('requested_at')
    .limit(1)
    .executeTakeFirst();
  return oldest && findRenewal(reader, oldest.id);
}

/**
 * Queued renewals that wait at `now` although their certificate, which is in the range, has another issuer: the issuer
 * is paused, a limit holds them back, or they were queued before `since`. Most urgent first, at most `limit`.
 */
export async function listWaitingRenewals(
  reader: Reader,
  { now, since, limit }: { readonly now: number; readonly since: number; readonly limit: number },
  { after, last }: IdRange,
): Promise<RenewalRow[]> {
  return reader
    .selectFrom('renewals')
    .innerJoin('certificates', 'certificates.id', 'renewals.certificate_id')
    .leftJoin('acme_issuers', 'acme_issuers.issuer_id', 'renewals.issuer_id')
    .selectAll('renewals')
    .where(isOpen)
    .where('renewals.certificate_id', '>', after)
    .where('renewals.certificate_id', '<=', last)
    .where('renewals.status', '=', 'queued')
    .where('certificates.fallback_issuer_id', 'is not', null)
    .where(({ or, and, eb, ref }) =>
      or([
        eb('renewals.held_until', '>', now),
        eb('acme_issuers.paused_until', '>', now),
        and([
          eb('renewals.requested_at', '<', since),
          eb('renewals.issuer_id', '=', ref('certificates.issuer_id')),
        ]),
      ]),
    )
    .orderBy('renewals.urgent_at')
    .limit(limit)
    .execute();
}

/**
 * How a renewal ended, and whether the attempt of its certificate before it, at the same issuer, met a limit as well.
 */
export type EndedRenewal = {
  readonly finished_at: number | null;
  readonly limited: 0 | 1;
  readonly limited_before: 0 | 1 | null;
  readonly domains: Json<Identifier[]>;
};

/** The results of this issuer's most recently queued renewals, last finished first. */
export async function listEndedRenewals(
  reader: Reader,
  issuerId: number,
  limit: number,
): Promise<readonly EndedRenewal[]> {
  const rows = await reader
    .selectFrom('renewals')
    .innerJoin('certificates', 'certificates.id', 'renewals.certificate_id')
    .select(['renewals.finished_at', 'renewals.limited', 'certificates.domains'])
    .select(({ selectFrom }) =>
      selectFrom('renewals as earlier')
        .select('earlier.limited')
        .whereRef('earlier.certificate_id', '=', 'renewals.certificate_id')
        .whereRef('earlier.id', '<', 'renewals.id')
        .where('earlier.issuer_id', '=', issuerId)
        .orderBy('earlier.id', 'desc')
        .limit(1)
        .as('limited_before'),
    )
    .where('renewals.issuer_id', '=', issuerId)
    .where('renewals.finished_at', 'is not', null)
    .orderBy('renewals.id', 'desc')
    .limit(10 * limit)
    .execute();
  return rows.toSorted((one, other) => (other.finished_at ?? 0) - (one.finished_at ?? 0)).slice(0, limit);
}

/** Until when the last queued renewal at this directory is held for this reason; null if none is. */
export async function lastHold(reader: Reader, directoryUrl: string, reason: string): Promise<number | null> {
  const row = await reader
    .selectFrom('renewals')
    .innerJoin('acme_issuers', 'acme_issuers.issuer_id', 'renewals.issuer_id')
    .select(({ fn }) => fn.max('renewals.held_until').as('until'))
    // A literal, so that SQLite uses the partial index of queued renewals.
    .where(sql<boolean>`renewals.status = 'queued'`)
    .where('renewals.hold_reason', '=', reason)
    .where('acme_issuers.directory_url', '=', directoryUrl)
    .executeTakeFirst();
  return row?.until ?? null;
}
