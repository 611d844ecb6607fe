/** The table `renewals`: the queue of renewals and their history. */
import { type Selectable, sql, type Updateable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import { withoutIndex } from '../../engine-sql.ts';
import type { RenewalStatus, RenewalsTable } from '../../schema/schema-renewals.ts';
import { isLabelled } from '../object-labels.ts';

export type RenewalRow = Selectable<RenewalsTable>;
export type RenewalChanges = Updateable<RenewalsTable>;

/**
 * The condition that a renewal is queued or running. The states are literals, not parameters: only then does SQLite use
 * the partial index of open renewals, regardless of the size of the history.
 */
export const isOpen = sql<boolean>`renewals.status in ('queued', 'running')`;

export async function findRenewal(reader: Reader, id: number): Promise<RenewalRow | undefined> {
  return reader.selectFrom('renewals').selectAll().where('id', '=', id).executeTakeFirst();
}

/** The queued or running renewal of a certificate; there is at most one. */
export async function findOpenRenewal(
  reader: Reader,
  certificateId: number,
): Promise<RenewalRow | undefined> {
  return reader
    .selectFrom('renewals')
    .selectAll()
    .where('certificate_id', '=', certificateId)
    .where(isOpen)
    .executeTakeFirst();
}

/**
 * The renewal, if it can be claimed at `now`: it is queued or its lease has expired, and neither a pause of its issuer
 * nor a limit of the CA holds it back.
 */
export async function findClaimableRenewal(
  reader: Reader,
  id: number,
  now: number,
): Promise<RenewalRow | undefined> {
  return reader
    .selectFrom('renewals')
    .leftJoin('acme_issuers', 'acme_issuers.issuer_id', 'renewals.issuer_id')
    .selectAll('renewals')
    .where('renewals.id', '=', id)
    .where(({ or, and, eb }) =>
      or([
        and([
          eb('renewals.status', '=', 'queued'),
          or([eb('renewals.held_until', 'is', null), eb('renewals.held_until', '<=', now)]),
        ]),
        and([eb('renewals.status', '=', 'running'), eb('renewals.lease_expires_at', '<=', now)]),
      ]),
    )
    .where(({ or, eb }) =>
      or([eb('acme_issuers.paused_until', 'is', null), eb('acme_issuers.paused_until', '<=', now)]),
    )
    .executeTakeFirst();
}

/** Queues a renewal and returns its id. */
export async function insertRenewal(
  writer: Writer,
  row: Pick<RenewalRow, 'certificate_id' | 'requested_by' | 'requested_at' | 'issuer_id'> &
    Partial<Pick<RenewalRow, 'urgent_at' | 'dns_lane' | 'name_set'>>,
): Promise<number> {
  const { id } = await writer
    .insertInto('renewals')
    .values({ ...row, status: 'queued' })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

export async function updateRenewal(writer: Writer, id: number, changes: RenewalChanges): Promise<void> {
  await writer.updateTable('renewals').set(changes).where('id', '=', id).execute();
}

/**
 * Changes a running renewal, but only while `owner` still holds its lease. Returns whether it did: a worker that lost
 * the lease must not overwrite the changes of the next one.
 */
export async function updateLeased(
  writer: Writer,
  id: number,
  owner: string,
  changes: RenewalChanges,
): Promise<boolean> {
  const result = await writer
    .updateTable('renewals')
    .set(changes)
    .where('id', '=', id)
    .where('status', '=', 'running')
    .where('lease_owner', '=', owner)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** The last renewal of a certificate before another one; undefined if that is the first. */
export async function findRenewalBefore(
  reader: Reader,
  { id, certificate_id }: Pick<RenewalRow, 'id' | 'certificate_id'>,
): Promise<RenewalRow | undefined> {
  return reader
    .selectFrom('renewals')
    .selectAll()
    .where('certificate_id', '=', certificate_id)
    .where('id', '<', id)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** A renewal with the names of its certificate and issuer. */
export type NamedRenewalRow = RenewalRow & { readonly certificate: string; readonly issuer: string | null };

export type RenewalPage = {
  readonly certificateId?: number | undefined;
  readonly failedOnly?: boolean;
  /** Only renewals of certificates with any of these labels; give `from`, too. */
  readonly reach?: readonly string[] | undefined;
  readonly status?: RenewalStatus | undefined;
  /** Only renewals older than the one with this id. */
  readonly before?: number | undefined;
  /** Only renewals with this id or a higher one. */
  readonly from?: number | undefined;
  readonly limit: number;
};

/**
 * Renewals with the names of their certificates, newest first. Without a certificate, no index has those that succeeded
 * or are queued in this order: give `from`, or use `pageQueuedRenewals`.
 */
export async function listRenewals(
  reader: Reader,
  {
    certificateId,
    failedOnly = false,
    status,
    before = Number.MAX_SAFE_INTEGER,
    from,
    limit,
    reach,
  }: RenewalPage,
): Promise<NamedRenewalRow[]> {
  // The few that run are read and sorted; by id, the complete history would be read.
  const id = status === 'running' ? withoutIndex<number>('renewals.id') : sql<number>`renewals.id`;
  let query = named(reader).where(id, '<', before).orderBy(id, 'desc').limit(limit);
  if (from !== undefined) query = query.where(id, '>=', from);
  if (certificateId !== undefined) query = query.where('renewals.certificate_id', '=', certificateId);
  if (reach !== undefined) query = query.where(isLabelled('certificate', 'renewals.certificate_id', reach));
  // Literals, so that SQLite uses the partial indexes.
  if (failedOnly || status === 'failed') query = query.where(sql<boolean>`renewals.status = 'failed'`);
  else if (status === 'running') query = query.where(sql<boolean>`renewals.status = 'running'`);
  else if (status !== undefined) query = query.where('renewals.status', '=', status);
  return query.execute();
}

/** A queued renewal. Each certificate has at most one. */
export type QueuedRenewal = Pick<RenewalRow, 'id' | 'certificate_id'>;

/** Queued renewals in the order of their certificates, after the one with the id `after`. */
export async function pageQueuedRenewals(
  reader: Reader,
  after: number,
  limit: number,
): Promise<QueuedRenewal[]> {
  return reader
    .selectFrom('renewals')
    .select(['id', 'certificate_id'])
    .where(isOpen)
    .where('status', '=', 'queued')
    .where('certificate_id', '>', after)
    .orderBy('certificate_id')
    .limit(limit)
    .execute();
}

/** The renewals with these ids and their names, newest first. */
export async function listNamedRenewals(reader: Reader, ids: readonly number[]): Promise<NamedRenewalRow[]> {
  return named(reader).where('renewals.id', 'in', ids).orderBy('renewals.id', 'desc').execute();
}

/** The highest id of a renewal; 0 without renewals. */
export async function lastRenewalId(reader: Reader): Promise<number> {
  const newest = await reader
    .selectFrom('renewals')
    .select(({ fn }) => fn.max<number | null>('id').as('id'))
    .executeTakeFirst();
  return newest?.id ?? 0;
}

/** One renewal with its names. */
export async function findNamedRenewal(reader: Reader, id: number): Promise<NamedRenewalRow | undefined> {
  return named(reader).where('renewals.id', '=', id).executeTakeFirst();
}

function named(reader: Reader) {
  return reader
    .selectFrom('renewals')
    .innerJoin('certificates', 'certificates.id', 'renewals.certificate_id')
    .leftJoin('issuers', 'issuers.id', 'renewals.issuer_id')
    .selectAll('renewals')
    .select(['certificates.name as certificate', 'issuers.name as issuer']);
}

/** A text that changes whenever a renewal is queued, claimed, progresses or finishes. */
export async function renewalsState(reader: Reader): Promise<string> {
  const newest = await lastRenewalId(reader);
  const open = await reader
    .selectFrom('renewals')
    .select(({ fn }) => [
      fn.countAll<number>().as('count'),
      fn.sum<number>('claims').as('claims'),
      sql<number>`sum(length(steps))`.as('steps'),
    ])
    .where(isOpen)
    .executeTakeFirstOrThrow();
  return [newest, open.count, open.claims, open.steps].join(' ');
}

/** The number of queued and of running renewals. */
export async function countOpenRenewals(reader: Reader): Promise<{ queued: number; running: number }> {
  const count = async (condition: typeof isOpen) => {
    const query = reader.selectFrom('renewals').select(({ fn }) => fn.countAll<number>().as('count'));
    return (await query.where(condition).executeTakeFirstOrThrow()).count;
  };
  // Literals, so that SQLite counts the entries of partial indexes.
  return {
    queued: await count(sql`renewals.status = 'queued'`),
    running: await count(sql`renewals.status = 'running'`),
  };
}

/** Shortens every lease to end no later than `latest`. */
export async function shortenLeases(writer: Writer, latest: number): Promise<void> {
  const changes = { lease_expires_at: latest };
  await writer
    .updateTable('renewals')
    .set(changes)
    .where(isOpen)
    .where('lease_expires_at', '>', latest)
    .execute();
}
