/** The table `endpoints`: TLS servers whose certificate the vault looks at. */
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type { EndpointsTable, UnhealthyState } from '../schema/schema-endpoints.ts';
import { isLabelled } from './object-labels.ts';

export type EndpointRow = Selectable<EndpointsTable>;

/** An endpoint with its certificate and that one's current version. */
export type ListedEndpointRow = EndpointRow & {
  /** null for one that is only watched. */
  readonly certificate: string | null;
  readonly current_version: number | null;
  /** When the vault got the current version. */
  readonly current_since: number | null;
};

export type EndpointPage = {
  /** Only these. */
  readonly ids?: readonly number[] | undefined;
  /** Of one certificate only. */
  readonly certificateId?: number | undefined;
  /** Only those of certificates with all of these labels. */
  readonly labels?: readonly string[] | undefined;
  /** Only those of certificates with any of these labels. */
  readonly reach?: readonly string[] | undefined;
  /** Only ids greater than `after`, up to `last`. */
  readonly after: number;
  readonly last?: number | undefined;
  readonly limit: number;
};

/** Endpoints in the order of their ids. Give `last` with labels or a reach: for them, rows are searched. */
export async function pageEndpoints(
  reader: Reader,
  { ids, certificateId, labels = [], reach, after, last, limit }: EndpointPage,
): Promise<ListedEndpointRow[]> {
  let query = listed(reader).where('endpoints.id', '>', after).orderBy('endpoints.id').limit(limit);
  if (ids !== undefined) query = query.where('endpoints.id', 'in', ids);
  if (last !== undefined) query = query.where('endpoints.id', '<=', last);
  if (certificateId !== undefined) query = query.where('endpoints.certificate_id', '=', certificateId);
  for (const label of labels)
    query = query.where(isLabelled('certificate', 'endpoints.certificate_id', [label]));
  if (reach !== undefined) query = query.where(isLabelled('certificate', 'endpoints.certificate_id', reach));
  return query.execute();
}

export async function findEndpoint(reader: Reader, id: number): Promise<ListedEndpointRow | undefined> {
  return listed(reader).where('endpoints.id', '=', id).executeTakeFirst();
}

/** The endpoint at this address with this server name. */
export async function findEndpointAt(
  reader: Reader,
  { host, port, server_name }: Pick<EndpointRow, 'host' | 'port' | 'server_name'>,
): Promise<ListedEndpointRow | undefined> {
  return listed(reader)
    .where('endpoints.host', '=', host)
    .where('endpoints.port', '=', port)
    .where('endpoints.server_name', '=', server_name)
    .executeTakeFirst();
}

function listed(reader: Reader) {
  return reader
    .selectFrom('endpoints')
    .leftJoin('certificates', 'certificates.id', 'endpoints.certificate_id')
    .leftJoin('certificate_versions', (join) =>
      join
        .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
        .onRef('certificate_versions.version', '=', 'certificates.current_version'),
    )
    .selectAll('endpoints')
    .select(['certificates.name as certificate', 'certificates.current_version'])
    .select('certificate_versions.created_at as current_since');
}

/** Whether there are at least `count` endpoints. */
export async function hasEndpoints(reader: Reader, count: number): Promise<boolean> {
  const last = await reader
    .selectFrom('endpoints')
    .select('id')
    .where('id', '>', 0)
    .orderBy('id')
    .offset(count - 1)
    .limit(1)
    .executeTakeFirst();
  return last !== undefined;
}

/** Adds an endpoint. Returns its id. */
export async function insertEndpoint(writer: Writer, row: Insertable<EndpointsTable>): Promise<number> {
  const { id } = await writer.insertInto('endpoints').values(row).returning('id').executeTakeFirstOrThrow();
  return id;
}

export async function updateEndpoint(
  writer: Writer,
  id: number,
  changes: Updateable<EndpointsTable>,
): Promise<void> {
  await writer.updateTable('endpoints').set(changes).where('id', '=', id).execute();
}

export async function deleteEndpoint(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('endpoints').where('id', '=', id).execute();
}

/** The endpoints that are due at `now`, the longest overdue first. */
export async function dueEndpoints(
  reader: Reader,
  now: number,
  limit: number,
): Promise<Pick<EndpointRow, 'id' | 'revision' | 'next_check_at'>[]> {
  return reader
    .selectFrom('endpoints')
    .select(['id', 'revision', 'next_check_at'])
    .where('next_check_at', '<=', now)
    .orderBy('next_check_at')
    .limit(limit)
    .execute();
}

/**
 * Makes the endpoints of a certificate due at `at`, unless they are between `now` and then. Those that are due already
 * may have been checked a moment ago, which is not written yet.
 */
export async function checkSoon(
  writer: Writer,
  certificateId: number,
  { now, at }: { readonly now: number; readonly at: number },
): Promise<void> {
  await writer
    .updateTable('endpoints')
    .set({ next_check_at: at })
    .where('certificate_id', '=', certificateId)
    .where(({ or, eb }) => or([eb('next_check_at', '>', at), eb('next_check_at', '<=', now)]))
    .execute();
}

/** What a check without news changes. */
export type Look = Pick<
  EndpointRow,
  'id' | 'revision' | 'next_check_at' | 'failures' | 'error' | 'tls_version' | 'ocsp_stapled'
> & {
  readonly checked_at: number;
  /** When the check was due: another value now means that someone wants one sooner. */
  readonly was_due_at: number;
};

/** How many looks one statement sets: each has nine values. */
const looksAtOnce = 200;

/** Stores these looks, except where the endpoint was changed or checked since. */
export async function setLooks(writer: Writer, looks: readonly Look[]): Promise<void> {
  for (let from = 0; from < looks.length; from += looksAtOnce) {
    const rows = looks.slice(from, from + looksAtOnce).map(
      (row) =>
        sql`(${int(row.id)}, ${int(row.revision)}, ${int(row.next_check_at)}, ${int(row.was_due_at)},
            ${int(row.failures)}, ${text(row.error)}, ${text(row.tls_version)}, ${int(row.ocsp_stapled)},
            ${int(row.checked_at)})`,
    );
    await sql`with seen (id, revision, next_check_at, was_due_at, failures, error, tls_version, ocsp_stapled,
        checked_at) as (values ${sql.join(rows)})
      update endpoints set failures = seen.failures, error = seen.error, tls_version = seen.tls_version,
        ocsp_stapled = seen.ocsp_stapled, checked_at = seen.checked_at,
        next_check_at = case when endpoints.next_check_at = seen.was_due_at then seen.next_check_at
          else endpoints.next_check_at end
      from seen where seen.id = endpoints.id and seen.revision = endpoints.revision
        and (endpoints.checked_at is null or seen.checked_at >= endpoints.checked_at)`.execute(writer);
  }
}

function int(value: number | null) {
  return sql`cast(${value} as bigint)`;
}

function text(value: string | null) {
  return sql`cast(${value} as text)`;
}

/** What the state of an endpoint depends on. */
export type EndpointFactsRow = Pick<
  ListedEndpointRow,
  | 'id'
  | 'certificate_id'
  | 'checked_at'
  | 'failures'
  | 'fingerprint_sha256'
  | 'version'
  | 'problem'
  | 'not_before'
  | 'not_after'
  | 'current_version'
  | 'current_since'
  | 'notified_state'
>;

/** The facts of at most `limit` endpoints after the id `after`, in the order of their ids. */
export async function pageEndpointFacts(
  reader: Reader,
  after: number,
  limit: number,
): Promise<EndpointFactsRow[]> {
  return reader
    .selectFrom('endpoints')
    .leftJoin('certificates', 'certificates.id', 'endpoints.certificate_id')
    .leftJoin('certificate_versions', (join) =>
      join
        .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
        .onRef('certificate_versions.version', '=', 'certificates.current_version'),
    )
    .select(['endpoints.id', 'endpoints.certificate_id', 'endpoints.checked_at', 'endpoints.failures'])
    .select(['endpoints.fingerprint_sha256', 'endpoints.version', 'endpoints.problem'])
    .select(['endpoints.not_before', 'endpoints.not_after', 'endpoints.notified_state'])
    .select(['certificates.current_version', 'certificate_versions.created_at as current_since'])
    .where('endpoints.id', '>', after)
    .orderBy('endpoints.id')
    .limit(limit)
    .execute();
}

/** Remembers what was notified about these endpoints. */
export async function setNotifiedEndpointState(
  writer: Writer,
  ids: readonly number[],
  notified_state: UnhealthyState | null,
): Promise<void> {
  await writer.updateTable('endpoints').set({ notified_state }).where('id', 'in', ids).execute();
}
