/** The tables `scans` and `scan_findings`: which networks are searched for TLS servers, and what was found. */
import { type ExpressionBuilder, type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type { Schema } from '../schema/schema.ts';
import type { ScanFindingsTable, ScansTable } from '../schema/schema-scans.ts';

export type ScanRow = Selectable<ScansTable>;

/** A scan with the number of servers that it found. */
export type ListedScanRow = ScanRow & { readonly found: number };

/** A finding with the name of the certificate that the vault has, and whether it is an endpoint already. */
export type FindingRow = Selectable<ScanFindingsTable> & {
  readonly certificate: string | null;
  readonly is_endpoint: number;
};

/** A finding without the certificates that the server sent. */
export type ListedFindingRow = Omit<FindingRow, 'chain_pem'>;

/** All scans in the order of their ids: there are few. */
export async function listScans(reader: Reader): Promise<ListedScanRow[]> {
  const rows = await listed(reader).orderBy('scans.id').execute();
  return rows.map((row) => ({ ...row, found: Number(row.found) }));
}

export async function findScan(reader: Reader, id: number): Promise<ListedScanRow | undefined> {
  const row = await listed(reader).where('scans.id', '=', id).executeTakeFirst();
  return row && { ...row, found: Number(row.found) };
}

function listed(reader: Reader) {
  return reader
    .selectFrom('scans')
    .selectAll('scans')
    .select((build) =>
      build
        .selectFrom('scan_findings')
        .whereRef('scan_findings.scan_id', '=', 'scans.id')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .as('found'),
    );
}

/** The scan that is due for the longest time, that no process works on and that is not among `running`. */
export async function dueScan(
  reader: Reader,
  now: number,
  running: readonly number[],
): Promise<number | undefined> {
  const row = await reader
    .selectFrom('scans')
    .select('id')
    .where('due_at', '<=', now)
    .where('claimed_until', '<=', now)
    .$if(running.length > 0, (query) => query.where('id', 'not in', running))
    .orderBy('due_at')
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/** Adds a scan. Returns its id. */
export async function insertScan(writer: Writer, row: Insertable<ScansTable>): Promise<number> {
  const { id } = await writer.insertInto('scans').values(row).returning('id').executeTakeFirstOrThrow();
  return id;
}

/** Changes a scan if its claim is still this one. Returns whether it was. */
export async function updateClaimedScan(
  writer: Writer,
  { id, claimed_until }: Pick<ScanRow, 'id' | 'claimed_until'>,
  changes: Updateable<ScansTable>,
): Promise<boolean> {
  const result = await writer
    .updateTable('scans')
    .set(changes)
    .where('id', '=', id)
    .where('claimed_until', '=', claimed_until)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** Deletes a scan with what it found. */
export async function deleteScan(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('scans').where('id', '=', id).execute();
}

export type FindingPage = {
  /** Of one scan only. */
  readonly scanId?: number | undefined;
  /** Only certificates that the vault has, or only others. */
  readonly known?: boolean | undefined;
  readonly after: number;
  readonly limit: number;
};

/** Findings in the order of their ids. */
export async function pageFindings(
  reader: Reader,
  { scanId, known, after, limit }: FindingPage,
): Promise<ListedFindingRow[]> {
  let query = findings(reader).where('scan_findings.id', '>', after).orderBy('scan_findings.id').limit(limit);
  if (scanId !== undefined) query = query.where('scan_findings.scan_id', '=', scanId);
  if (known !== undefined) {
    query = query.where('scan_findings.certificate_id', known ? 'is not' : 'is', null);
  }
  return query.execute();
}

export async function findFinding(reader: Reader, id: number): Promise<FindingRow | undefined> {
  return findings(reader)
    .select('scan_findings.chain_pem')
    .where('scan_findings.id', '=', id)
    .executeTakeFirst();
}

/** The finding at an IP address and port. */
export async function findFindingAt(
  reader: Reader,
  host: string,
  port: number,
): Promise<FindingRow | undefined> {
  return findings(reader)
    .select('scan_findings.chain_pem')
    .where('scan_findings.host', '=', host)
    .where('scan_findings.port', '=', port)
    .executeTakeFirst();
}

/** Without the certificates, which are large. */
const listedColumns = [
  ...(['scan_findings.id', 'scan_findings.scan_id', 'scan_findings.host', 'scan_findings.port'] as const),
  ...(['scan_findings.starttls', 'scan_findings.certificate_id', 'scan_findings.version'] as const),
  ...(['scan_findings.fingerprint_sha256', 'scan_findings.issuer', 'scan_findings.names'] as const),
  ...(['scan_findings.not_before', 'scan_findings.not_after'] as const),
  ...(['scan_findings.first_seen_at', 'scan_findings.seen_at'] as const),
] as const;

function findings(reader: Reader) {
  return reader
    .selectFrom('scan_findings')
    .leftJoin('certificates', 'certificates.id', 'scan_findings.certificate_id')
    .select(listedColumns)
    .select('certificates.name as certificate')
    .select((build) => endpointThere(build).as('is_endpoint'));
}

function endpointThere(build: ExpressionBuilder<Schema, 'scan_findings'>) {
  return build
    .case()
    .when(
      build.exists(
        build
          .selectFrom('endpoints')
          .select('endpoints.id')
          .whereRef('endpoints.host', '=', 'scan_findings.host')
          .whereRef('endpoints.port', '=', 'scan_findings.port'),
      ),
    )
    .then(sql.lit(1))
    .else(sql.lit(0))
    .end();
}

/** Whether there are at least `count` findings. */
export async function hasFindings(reader: Reader, count: number): Promise<boolean> {
  const last = await reader
    .selectFrom('scan_findings')
    .select('id')
    .orderBy('id')
    .offset(count - 1)
    .limit(1)
    .executeTakeFirst();
  return last !== undefined;
}

/** What a scan saw at an address, with the time. */
export type SeenServer = Omit<Insertable<ScanFindingsTable>, 'id' | 'first_seen_at'>;

/** Stores what a scan saw, in place of what was seen at the address before; `isFull` adds no further addresses. */
export async function storeFinding(
  writer: Writer,
  { host, port, ...seen }: SeenServer,
  isFull: boolean,
): Promise<void> {
  if (isFull) {
    await writer
      .updateTable('scan_findings')
      .set(seen)
      .where('host', '=', host)
      .where('port', '=', port)
      .execute();
    return;
  }
  await writer
    .insertInto('scan_findings')
    .values({ host, port, ...seen, first_seen_at: seen.seen_at })
    .onConflict((conflict) => conflict.columns(['host', 'port']).doUpdateSet(seen))
    .execute();
}

/**
 * The addresses that a scan saw for the first time since `since`, without those that are endpoints and those that serve
 * a certificate of the vault: the first `limit`.
 */
export function newFindings(
  reader: Reader,
  { scanId, since, limit }: { readonly scanId: number; readonly since: number; readonly limit: number },
): Promise<ListedFindingRow[]> {
  return findings(reader)
    .where('scan_findings.scan_id', '=', scanId)
    .where('scan_findings.first_seen_at', '>=', since)
    .where('scan_findings.certificate_id', 'is', null)
    .where((build) => endpointThere(build), '=', 0)
    .orderBy('scan_findings.id')
    .limit(limit)
    .execute();
}

/** Deletes what a scan found before its latest run began, and not since. */
export async function deleteFindingsBefore(writer: Writer, scanId: number, startedAt: number): Promise<void> {
  await writer
    .deleteFrom('scan_findings')
    .where('scan_id', '=', scanId)
    .where('seen_at', '<', startedAt)
    .execute();
}
