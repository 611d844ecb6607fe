/** What the clock alone brings about: certificates and API keys whose end has come nearer than was told so far. */
import { sql } from 'kysely';
import type { Reader } from '../database.ts';

/** How near the end is; more is worse. What nobody renews is told of earlier, because a person must act. */
export const nearness = { far: 0, near: 1, emergency: 2, over: 3 } as const;

export type NearExpiry = {
  readonly id: number;
  readonly name: string;
  readonly ends_at: number;
  readonly level: number;
  /** What was told so far; null where nothing was. */
  readonly told: number | null;
};

export type ExpiringCertificate = NearExpiry & {
  readonly domains: string;
  readonly last_error: string | null;
  readonly auto_renew: number;
  readonly issuer: string | null;
};

export type ExpiringApiKey = NearExpiry & {
  readonly prefix: string;
  readonly any_certificate: number;
  readonly last_used_at: number | null;
};

const longestNotice = 30 * 86_400_000;

/** Those with greater ids than the first, up to the last. */
export type IdRange = { readonly after: number; readonly last: number };

/** The range of the next `count` ids after `after`, or undefined where there are none. */
export async function nextRange(
  reader: Reader,
  table: 'certificates' | 'api_keys',
  after: number,
  count: number,
): Promise<IdRange | undefined> {
  const { last } = await reader
    .selectFrom(({ selectFrom }) =>
      selectFrom(table).select('id').where('id', '>', after).orderBy('id').limit(count).as('page'),
    )
    .select(({ fn }) => fn.max<number | null>('id').as('last'))
    .executeTakeFirstOrThrow();
  return last === null ? undefined : { after, last };
}

/**
 * Of the certificates in a range those about whose end more is to be told at `now`, or whose alarm is over, those that end
 * first in front.
 */
export async function listExpiringCertificates(
  reader: Reader,
  now: number,
  { after, last }: IdRange,
  limit: number,
): Promise<ExpiringCertificate[]> {
  const lifetime = sql`(v.not_after - v.not_before)`;
  const level = sql<number>`case
    when c.disabled_at is not null then 0
    when v.not_after <= ${now} then 3
    when v.not_after - ${lifetime} / 20.0 <= ${now} then 2
    when (c.issuer_id is null or c.auto_renew = 0)
      and v.not_after - min(${lifetime} / 4.0, ${sql.lit(longestNotice)}) <= ${now} then 1
    else 0 end`;
  return reader
    .selectFrom('certificates as c')
    .innerJoin('certificate_versions as v', (join) =>
      join.onRef('v.certificate_id', '=', 'c.id').onRef('v.version', '=', 'c.current_version'),
    )
    .leftJoin('issuers as i', 'i.id', 'c.issuer_id')
    .leftJoin('notification_alarms as a', (join) =>
      join.onRef('a.certificate_id', '=', 'c.id').on('a.event', '=', 'certificate.expiring'),
    )
    .select(['c.id', 'c.name', 'c.domains', 'c.last_error', 'c.auto_renew'])
    .select(['v.not_after as ends_at', 'i.name as issuer', 'a.level as told', level.as('level')])
    .where('c.id', '>', after)
    .where('c.id', '<=', last)
    .where(moreToTell(level))
    .orderBy('v.not_after')
    .limit(limit)
    .execute();
}

/** Of the API keys in a range those that are not revoked and about whose end more is to be told, or whose alarm is over. */
export async function listExpiringApiKeys(
  reader: Reader,
  now: number,
  { after, last }: IdRange,
  limit: number,
): Promise<ExpiringApiKey[]> {
  const lifetime = sql`(k.expires_at - k.created_at)`;
  const level = sql<number>`case
    when k.revoked_at is not null or k.expires_at is null then 0
    when k.expires_at <= ${now} then 3
    when k.expires_at - min(${lifetime} / 20.0, 86400000) <= ${now} then 2
    when k.expires_at - min(${lifetime} / 4.0, ${sql.lit(longestNotice / 2)}) <= ${now} then 1
    else 0 end`;
  return reader
    .selectFrom('api_keys as k')
    .leftJoin('notification_alarms as a', (join) =>
      join.onRef('a.api_key_id', '=', 'k.id').on('a.event', '=', 'api_key.expiring'),
    )
    .select(['k.id', 'k.name', 'k.prefix', 'k.any_certificate', 'k.last_used_at'])
    .select(['a.level as told', level.as('level'), sql<number>`coalesce(k.expires_at, 0)`.as('ends_at')])
    .where('k.id', '>', after)
    .where('k.id', '<=', last)
    .where(moreToTell(level))
    .orderBy('k.id')
    .limit(limit)
    .execute();
}

/** Worse than what was told, or not bad at all any more though something was told. */
function moreToTell(level: ReturnType<typeof sql<number>>) {
  return sql<boolean>`(${level} > coalesce(a.level, 0) or (${level} = 0 and a.level is not null))`;
}

export type Upcoming = { readonly name: string; readonly ends_at: number };

/**
 * Certificates that end before `until` and for which a person may be needed: nobody renews them, or who should has not,
 * though the last quarter of their lifetime (at most 30 days) has begun at `now`. The first to end in front.
 */
export async function certificatesExpiringBefore(
  reader: Reader,
  now: number,
  until: number,
): Promise<Upcoming[]> {
  return reader
    .selectFrom('certificates as c')
    .innerJoin('certificate_versions as v', (join) =>
      join.onRef('v.certificate_id', '=', 'c.id').onRef('v.version', '=', 'c.current_version'),
    )
    .select(['c.name', 'v.not_after as ends_at'])
    .where('c.disabled_at', 'is', null)
    .where('v.not_after', '<', until)
    .where(
      sql<boolean>`(c.issuer_id is null or c.auto_renew = 0
        or v.not_after - min((v.not_after - v.not_before) / 4.0, ${sql.lit(longestNotice)}) <= ${now})`,
    )
    .orderBy('v.not_after')
    .execute();
}

/** API keys that are not revoked and end between `now` and `until`, the first in front. */
export async function apiKeysExpiringBefore(
  reader: Reader,
  now: number,
  until: number,
): Promise<(Upcoming & { readonly id: number })[]> {
  const rows = await reader
    .selectFrom('api_keys as k')
    .select(['k.id', 'k.name', 'k.expires_at'])
    .where('k.revoked_at', 'is', null)
    .where('k.expires_at', '>', now)
    .where('k.expires_at', '<', until)
    .orderBy('k.expires_at')
    .execute();
  return rows.map(({ id, name, expires_at }) => ({ id, name, ends_at: expires_at ?? 0 }));
}

/** Certificates that have a version since `since`, by name. */
export async function certificatesIssuedSince(reader: Reader, since: number): Promise<{ name: string }[]> {
  return reader
    .selectFrom('certificates as c')
    .innerJoin('certificate_versions as v', (join) =>
      join.onRef('v.certificate_id', '=', 'c.id').onRef('v.version', '=', 'c.current_version'),
    )
    .select('c.name')
    .where('v.created_at', '>=', since)
    .orderBy('c.name')
    .execute();
}

/** Certificates whose last attempt at a renewal failed, unless they are disabled, by name, with what was said. */
export async function failingCertificates(
  reader: Reader,
): Promise<{ name: string; last_error: string | null }[]> {
  return reader
    .selectFrom('notification_alarms as a')
    .innerJoin('certificates as c', 'c.id', 'a.certificate_id')
    .select(['c.name', 'c.last_error'])
    .where('a.event', '=', 'renewal.failed')
    .where('c.disabled_at', 'is', null)
    .orderBy('c.name')
    .execute();
}
