/**
 * The queue of renewals as lanes, one per issuer and DNS provider, and the head of each. The cost grows with the number
 * of lanes, not with the queue: each query is one step in the index of queued renewals.
 */
import { sql } from 'kysely';
import type { Reader } from '../../database.ts';

/** The issuer and provider whose slots a renewal needs. */
export type Lane = {
  /** null once the issuer is deleted. */
  readonly issuer_id: number | null;
  /** The id of the DNS provider; 0 for none. */
  readonly dns_lane: number;
  /** Whether the issuer is an ACME CA; the private CA issues immediately. */
  readonly is_acme: 0 | 1;
  /** Whether people create the records of the DNS provider: that takes hours. */
  readonly is_by_hand: 0 | 1;
};

const isByHand = sql.raw(
  "case when exists (select 1 from dns_providers where id = renewals.dns_lane and type = 'manual') then 1 else 0 end as is_by_hand",
);

const isAcme = sql.raw('case when acme_issuers.issuer_id is null then 0 else 1 end');

/** The next renewal of its lane. */
export type LaneHead = Lane & { readonly id: number; readonly urgent_at: number };

const queued = sql.raw("renewals.status = 'queued'");

/**
 * The next renewal of each lane at `now`, most urgent lane first. Skips lanes of a paused issuer, and renewals that a
 * limit holds back.
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
        select asked.issuer, ${isAcme}
        from asked left join acme_issuers on acme_issuers.issuer_id = asked.issuer
        where asked.issuer is not null and coalesce(acme_issuers.paused_until, 0) <= ${now}
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
    from heads cross join renewals
    where renewals.id = heads.id
    order by renewals.urgent_at, renewals.id
  `.execute(reader);
  return rows;
}

/** Renewals whose worker died, most urgent first: their lease has expired at `now`, and their issuer is not paused. */
export async function listLeftRenewals(reader: Reader, now: number): Promise<LaneHead[]> {
  const { rows } = await sql<LaneHead>`
    select renewals.id, renewals.issuer_id, renewals.dns_lane, renewals.urgent_at,
      ${isAcme} as is_acme, ${isByHand}
    from renewals left join acme_issuers on acme_issuers.issuer_id = renewals.issuer_id
    where renewals.status = 'running' and renewals.lease_expires_at <= ${now}
      and coalesce(acme_issuers.paused_until, 0) <= ${now}
    order by renewals.urgent_at, renewals.id
  `.execute(reader);
  return rows;
}
