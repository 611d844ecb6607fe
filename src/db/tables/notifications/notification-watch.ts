/** Expiry notifications: certificates and API keys that are closer to expiry than the last notification said. */
import { sql } from 'kysely';
import type { Identifier } from '../../../base/identifier.ts';
import type { Json } from '../../../base/json.ts';
import type { Reader } from '../../database.ts';
import { smallerOf } from '../../engine-sql.ts';
import { largestSkew } from '../certificates/certificate-statuses.ts';
import type { IdRange } from '../id-ranges.ts';

/**
 * How close the expiry is; higher is worse. Without automatic renewal the notification is sent earlier, because a
 * person must act.
 */
export const nearness = { far: 0, near: 1, emergency: 2, over: 3 } as const;

export type NearExpiry = {
  readonly id: number;
  readonly name: string;
  readonly ends_at: number;
  readonly level: number;
  /** The level of the last notification; null if there was none. */
  readonly told: number | null;
};

export type ExpiringCertificate = NearExpiry & {
  readonly domains: Json<Identifier[]>;
  readonly last_error: string | null;
  readonly auto_renew: number;
  readonly issuer: string | null;
  readonly begins_at: number;
  /** The ACME client that should have renewed it. */
  readonly owner: string | null;
};

export type ExpiringApiKey = NearExpiry & {
  readonly prefix: string;
  readonly any_certificate: number;
  readonly certificate_labels: Json<string[]> | null;
  readonly last_used_at: number | null;
};

const day = 86_400_000;

const maxNotice = 30 * day;

/**
 * Certificates in a range that are due for another expiry notification at `now`, not valid yet, or whose alarm is
 * resolved, earliest expiry first.
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
    when v.not_after - ${lifetime} / 20.0 <= ${now} or v.not_before > ${now + largestSkew} then 2
    when (c.issuer_id is null or c.auto_renew = 0)
      and v.not_after - ${smallerOf(sql`${lifetime} / 4.0`, sql.lit(maxNotice))} <= ${now} then 1
    else 0 end`;
  return reader
    .selectFrom('certificates as c')
    .innerJoin('certificate_versions as v', (join) =>
      join.onRef('v.certificate_id', '=', 'c.id').onRef('v.version', '=', 'c.current_version'),
    )
    .leftJoin('issuers as i', 'i.id', 'c.issuer_id')
    .leftJoin('acme_clients as o', 'o.id', 'c.acme_client_id')
    .leftJoin('notification_alarms as a', (join) =>
      join.onRef('a.certificate_id', '=', 'c.id').on('a.event', '=', 'certificate.expiring'),
    )
    .select(['c.id', 'c.name', 'c.domains', 'c.last_error', 'c.auto_renew'])
    .select(['v.not_before as begins_at', 'v.not_after as ends_at', 'i.name as issuer', 'o.name as owner'])
    .select(['a.level as told', level.as('level')])
    .where('c.id', '>', after)
    .where('c.id', '<=', last)
    .where(isDue(level))
    .orderBy('v.not_after')
    .limit(limit)
    .execute();
}

/** API keys in a range that are not revoked and are due for another expiry notification, or whose alarm is resolved. */
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
    when k.expires_at - ${smallerOf(sql`${lifetime} / 20.0`, sql.lit(day))} <= ${now} then 2
    when k.expires_at - ${smallerOf(sql`${lifetime} / 4.0`, sql.lit(maxNotice / 2))} <= ${now} then 1
    else 0 end`;
  return reader
    .selectFrom('api_keys as k')
    .leftJoin('notification_alarms as a', (join) =>
      join.onRef('a.api_key_id', '=', 'k.id').on('a.event', '=', 'api_key.expiring'),
    )
    .select(['k.id', 'k.name', 'k.prefix', 'k.any_certificate', 'k.certificate_labels', 'k.last_used_at'])
    .select(['a.level as told', level.as('level'), sql<number>`coalesce(k.expires_at, 0)`.as('ends_at')])
    .where('k.id', '>', after)
    .where('k.id', '<=', last)
    .where(isDue(level))
    .orderBy('k.id')
    .limit(limit)
    .execute();
}

/** Worse than the last notification, or no longer a problem after one was sent. */
function isDue(level: ReturnType<typeof sql<number>>) {
  return sql<boolean>`(${level} > coalesce(a.level, 0) or (${level} = 0 and a.level is not null))`;
}

export type Upcoming = { readonly name: string; readonly ends_at: number };

/**
 * Certificates in a range that expire before `until` and may need attention: they do not renew automatically, or their
 * renewal is overdue because the last quarter of their lifetime (at most 30 days) has begun at `now`.
 */
export async function certificatesExpiringBefore(
  reader: Reader,
  now: number,
  until: number,
  range: IdRange,
): Promise<Upcoming[]> {
  return withVersions(reader, range)
    .select(['c.name', 'v.not_after as ends_at'])
    .where('c.disabled_at', 'is', null)
    .where('v.not_after', '<', until)
    .where(
      sql<boolean>`(c.issuer_id is null or c.auto_renew = 0
        or v.not_after - ${smallerOf(sql`(v.not_after - v.not_before) / 4.0`, sql.lit(maxNotice))} <= ${now})`,
    )
    .execute();
}

/** API keys in a range that are not revoked and expire between `now` and `until`. */
export async function apiKeysExpiringBefore(
  reader: Reader,
  now: number,
  until: number,
  { after, last }: IdRange,
): Promise<(Upcoming & { readonly id: number })[]> {
  const rows = await reader
    .selectFrom('api_keys as k')
    .select(['k.id', 'k.name', 'k.expires_at'])
    .where('k.id', '>', after)
    .where('k.id', '<=', last)
    .where('k.revoked_at', 'is', null)
    .where('k.expires_at', '>', now)
    .where('k.expires_at', '<', until)
    .execute();
  return rows.map(({ id, name, expires_at }) => ({ id, name, ends_at: expires_at ?? 0 }));
}

/** Certificates in a range with a version issued since `since`. */
export async function certificatesIssuedSince(
  reader: Reader,
  since: number,
  range: IdRange,
): Promise<{ name: string }[]> {
  return withVersions(reader, range).select('c.name').where('v.created_at', '>=', since).execute();
}

/** Certificates in a range whose last renewal failed, unless they are disabled, with the error. */
export async function failingCertificates(
  reader: Reader,
  { after, last }: IdRange,
): Promise<{ name: string; last_error: string | null }[]> {
  return reader
    .selectFrom('notification_alarms as a')
    .innerJoin('certificates as c', 'c.id', 'a.certificate_id')
    .select(['c.name', 'c.last_error'])
    .where('a.certificate_id', '>', after)
    .where('a.certificate_id', '<=', last)
    .where('a.event', '=', 'renewal.failed')
    .where('c.disabled_at', 'is', null)
    .execute();
}

/** The certificates in a range with their current versions. */
function withVersions(reader: Reader, { after, last }: IdRange) {
  return reader
    .selectFrom('certificates as c')
    .innerJoin('certificate_versions as v', (join) =>
      join.onRef('v.certificate_id', '=', 'c.id').onRef('v.version', '=', 'c.current_version'),
    )
    .where('c.id', '>', after)
    .where('c.id', '<=', last);
}
