/** The table `issuance_holds`, and how much a CA has issued and rejected recently, as its limits count it. */
import { sql } from 'kysely';
import { day } from '../../../base/duration.ts';
import type { Identifier } from '../../../base/identifier.ts';
import { type Json, parseJson, parseJsonOr } from '../../../base/json.ts';
import type { Reader, Writer } from '../../database.ts';
import { containsText } from '../../engine-sql.ts';
import type { IssuanceHoldsTable } from '../../schema/schema-renewals.ts';

/** Limits that hold back orders at this directory at `now`. */
export async function listHolds(
  reader: Reader,
  directoryUrl: string,
  now: number,
): Promise<IssuanceHoldsTable[]> {
  return reader
    .selectFrom('issuance_holds')
    .selectAll()
    .where('directory_url', '=', directoryUrl)
    .where('until', '>', now)
    .execute();
}

/** Stores a limit reported by the CA, replacing an earlier one for the same subject; expired ones are deleted. */
export async function storeHold(writer: Writer, hold: IssuanceHoldsTable, now: number): Promise<void> {
  await writer.deleteFrom('issuance_holds').where('until', '<=', now).execute();
  await writer
    .insertInto('issuance_holds')
    .values(hold)
    .onConflict((conflict) => conflict.columns(['directory_url', 'scope', 'subject']).doUpdateSet(hold))
    .execute();
}

/** Shortens every hold to end no later than `latest`. */
export async function shortenHolds(writer: Writer, latest: number): Promise<void> {
  await writer.updateTable('issuance_holds').set({ until: latest }).where('until', '>', latest).execute();
  await writer
    .updateTable('renewals')
    .set({ held_until: latest })
    .where(sql<boolean>`status = 'queued'`)
    .where('held_until', '>', latest)
    .execute();
}

/** When the CA issued for this set of names, newest first, at most `limit`. */
export async function issuedForNames(
  reader: Reader,
  directoryUrl: string,
  nameSetOf: string,
  limit: number,
): Promise<number[]> {
  const rows = await reader
    .selectFrom('renewals')
    .innerJoin('acme_issuers', 'acme_issuers.issuer_id', 'renewals.issuer_id')
    .select('renewals.finished_at')
    .where('renewals.name_set', '=', nameSetOf)
    // A literal, so that SQLite uses the partial index of successes.
    .where(sql<boolean>`renewals.status = 'succeeded'`)
    .where('acme_issuers.directory_url', '=', directoryUrl)
    .orderBy('renewals.finished_at', 'desc')
    .limit(limit)
    .execute();
  return rows.map(({ finished_at }) => finished_at ?? 0);
}

/**
 * What the CA issued since `since` by versions of the vault that did not store the set of names: when, and the names.
 */
export async function issuedWithoutSet(
  reader: Reader,
  directoryUrl: string,
  since: number,
): Promise<{ readonly at: number; readonly names: readonly string[] }[]> {
  const rows = await reader
    .selectFrom('renewals')
    .innerJoin('acme_issuers', 'acme_issuers.issuer_id', 'renewals.issuer_id')
    .select(['renewals.finished_at', 'renewals.order_domains'])
    .where('renewals.name_set', 'is', null)
    .where('renewals.finished_at', '>', since)
    // A literal, so that the partial index of successes answers.
    .where(sql<boolean>`renewals.status = 'succeeded'`)
    .where('acme_issuers.directory_url', '=', directoryUrl)
    .execute();
  return rows.map(({ finished_at, order_domains }) => ({
    at: finished_at ?? 0,
    names: parseJsonOr(order_domains, []),
  }));
}

/** A certificate counts as renewed where the CA issued one for the same names this long before (Boulder, 2026). */
const renewalWindow = 120 * day;

/**
 * Versions from this CA since `since` that may have names in the domain, newest first; the caller checks exactly.
 * Renewals, which succeed a version of the same names from this CA, are left out.
 */
export async function issuedNear(
  reader: Reader,
  directoryUrl: string,
  domain: string,
  since: number,
): Promise<{ readonly domains: Json<Identifier[]>; readonly created_at: number }[]> {
  return reader
    .selectFrom('certificate_versions')
    .select(['domains', 'created_at'])
    .where('directory_url', '=', directoryUrl)
    .where('created_at', '>', since)
    .where(containsText(sql`domains`, `${domain}"`))
    .where(({ not, exists, selectFrom, ref, eb }) =>
      not(
        exists(
          selectFrom('certificate_versions as earlier')
            .select('earlier.id')
            .whereRef('earlier.certificate_id', '=', 'certificate_versions.certificate_id')
            .whereRef('earlier.version', '<', 'certificate_versions.version')
            .whereRef('earlier.directory_url', '=', 'certificate_versions.directory_url')
            .whereRef('earlier.domains', '=', 'certificate_versions.domains')
            .where('earlier.created_at', '>', eb(ref('certificate_versions.created_at'), '-', renewalWindow)),
        ),
      ),
    )
    .orderBy('created_at', 'desc')
    .execute();
}

/**
 * When the `count`th newest order of the account was created; undefined if there are fewer. A pending one counts as
 * created now.
 */
export async function orderedBefore(
  reader: Reader,
  accountId: number,
  count: number,
  now: number,
): Promise<number | undefined> {
  const row = await reader
    .selectFrom('renewals')
    .select('finished_at')
    .where('acme_account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(1)
    .offset(count - 1)
    .executeTakeFirst();
  return row && (row.finished_at ?? now);
}

/** A renewal that failed after its order had been made, and the names that were ordered. */
export type FailedOrder = { readonly at: number; readonly names: readonly string[] };

/** Of others only the failures among so many newest renewals are read: a long history must not make each claim slow. */
const renewalsRead = 5000;

/** The newest failures at this account since `since`, and those of the certificate, at most `limit`; in no order. */
export async function failedOrders(
  reader: Reader,
  accountId: number | null,
  certificate: { readonly id: number; readonly domains: Json<Identifier[]> },
  since: number,
  limit: number,
): Promise<FailedOrder[]> {
  const columns = ['id', 'status', 'order_url', 'order_domains', 'finished_at', 'certificate_id'] as const;
  const own = await reader
    .selectFrom('renewals')
    .select(columns)
    .where('certificate_id', '=', certificate.id)
    .orderBy('id', 'desc')
    // The certificate itself is among them.
    .limit(limit + 1)
    .execute();
  const others = await reader
    .selectFrom('renewals')
    .select(columns)
    // A literal, so that the partial index of failures answers.
    .where(sql<boolean>`status = 'failed'`)
    .where('id', '>', ({ selectFrom }) =>
      selectFrom('renewals').select(sql<number>`max(id) - ${renewalsRead}`.as('id')),
    )
    .where('acme_account_id', 'is not distinct from', accountId)
    .where('certificate_id', '!=', certificate.id)
    .where('finished_at', '>', since)
    .where('order_domains', 'is not', null)
    .execute();
  return [...own, ...others].flatMap(({ status, order_url, order_domains, finished_at }) => {
    // Earlier versions kept the URL and not always the names.
    const isOrdered = order_domains !== null || order_url !== null;
    if (status !== 'failed' || !isOrdered || (finished_at ?? 0) <= since) return [];
    return { at: finished_at ?? 0, names: parseJson(order_domains ?? certificate.domains) };
  });
}

/** The names of a certificate that is being renewed. */
export type NamesUnderWay = { readonly domains: Json<Identifier[]>; readonly name_set: string | null };

/** The names of the certificates that this issuer is currently processing. */
export async function namesUnderWay(reader: Reader, issuerId: number): Promise<NamesUnderWay[]> {
  return reader
    .selectFrom('renewals')
    .innerJoin('certificates', 'certificates.id', 'renewals.certificate_id')
    .select(['certificates.domains', 'renewals.name_set'])
    .where(sql<boolean>`renewals.status = 'running'`)
    .where('renewals.issuer_id', '=', issuerId)
    .execute();
}
