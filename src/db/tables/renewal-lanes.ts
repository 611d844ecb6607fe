/**
 * The queue of renewals as lanes, one for each issuer and DNS provider, and the head of each. What is read grows with
 * the lanes, not with the queue: each question is one step in the index of what is queued.
 */
import { sql } from 'kysely';
import type { Reader } from '../database.ts';

/** Whose slots a renewal needs. */
export type Lane = {
  /** null once the issuer is gone. */
  readonly issuer_id: number | null;
  /** The id of the DNS provider; 0 for none. */
  readonly dns_lane: number;
  /** Whether the issuer is an ACME CA; the private CA answers at once. */
  readonly is_acme: 0 | 1;
  /** Whether people create the records of the DNS provider: that takes hours. */
  readonly is_by_hand: 0 | 1;
};

const isByHand = sql.raw(
  "exists (select 1 from dns_providers where id = renewals.dns_lane and type = 'manual') as is_by_hand",
);

/** The renewal that is the next of its lane. */
export type LaneHead = Lane & { readonly id: number; readonly urgent_at: number };

const queued = sql.raw("renewals.status = 'queued'");

/**
 * The next renewal of each lane at `now`, the most urgent lane first. Lanes of a paused issuer are left out, and renewals
 * that a limit holds back are passed over.
 */
export async function listLaneHeads(reader: Reader, now: number): Promise<LaneHead[]> {
  const { rows } = await sql<LaneHead>`
    with recursive
      asked (issuer) as (
        select min(issuer_id) from renewals where ${queued}
        union all
        select (select min(issuer_id) from renewals where ${queued} and issuer_id > asked.issuer)
        from asked where asked.issuer is not null
      ),
      open_issuers (issuer, is_acme) as (
        select asked.issuer, acme_issuers.issuer_id is not null
        from asked left join acme_issuers on acme_issuers.issuer_id = asked.issuer
        where asked.issuer is not null and ifnull(acme_issuers.paused_until, 0) <= ${now}
      ),
      lanes (issuer, is_acme, lane) as (
        select issuer, is_acme,
          (select min(dns_lane) from renewals where ${queued} and issuer_id = open_issuers.issuer)
        from open_issuers
        union all
        select issuer, is_acme,
          (select min(dns_lane) from renewals
            where ${queued} and issuer_id = lanes.issuer and dns_lane > lanes.lane)
        from lanes where lanes.lane is not null
      ),
      heads (is_acme, id) as (
        select is_acme,
          (select id from renewals
            where ${queued} and issuer_id = lanes.issuer and dns_lane = lanes.lane
              and (held_until is null or held_until <= ${now})
            order by urgent_at, id limit 1)
        from lanes where lanes.lane is not null
        union all
        select 0, (select id from renewals where ${queued} and issuer_id is null limit 1)
      )
    select heads.is_acme, renewals.id, renewals.issuer_id, renewals.dns_lane, renewals.urgent_at, ${isByHand}
    from heads cross join renewals on renewals.id = heads.id
    order by renewals.urgent_at, renewals.id
  `.execute(reader);
  return rows;
}

/** Renewals whose worker died, the most urgent first: their lease has run out at `now`, and their issuer is not paused. */
export async function listLeftRenewals(reader: Reader, now: number): Promise<LaneHead[]> {
  const { rows } = await sql<LaneHead>`
    select renewals.id, renewals.issuer_id, renewals.dns_lane, renewals.urgent_at,
      acme_issuers.issuer_id is not null as is_acme, ${isByHand}
    from renewals left join acme_issuers on acme_issuers.issuer_id = renewals.issuer_id
    where renewals.status = 'running' and renewals.lease_expires_at <= ${now}
      and ifnull(acme_issuers.paused_until, 0) <= ${now}
    order by renewals.urgent_at, renewals.id
  `.execute(reader);
  return rows;
}
