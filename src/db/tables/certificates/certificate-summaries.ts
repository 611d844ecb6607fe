/** Certificates with the names of their issuers and the displayed facts of their current versions. */

import type { Expression } from 'kysely';
import { type Builder, compiledQuery } from '../../compiled-query.ts';
import type { Reader } from '../../database.ts';
import type { ShownVersionRow, VersionSummaryRow } from './certificate-versions.ts';
import type { CertificateRow } from './certificates.ts';

/** A certificate with the facts of its current version and its issuer that lists show. */
export type CertificateSummaryRow = CertificateRow & {
  issuer_name: string | null;
  /** The ACME client that owns it. */
  owner_name: string | null;
  current: VersionSummaryRow | null;
};

/** The displayed part of such a row. */
export type ShownCertificateRow = Pick<
  CertificateSummaryRow,
  | (
      | 'name'
      | 'domains'
      | 'uris'
      | 'emails'
      | 'labels'
      | 'key_type'
      | 'issuer_name'
      | 'acme_client_id'
      | 'owner_name'
      | 'disabled_at'
      | 'auto_renew'
      | 'created_at'
    )
  | ('current_version' | 'next_renewal_at' | 'last_error' | 'last_attempt_at' | 'csr')
> & { current: ShownVersionRow | null };

/** At most `limit` certificates after the name `after`; only those in the allowlist of a key, if given. */
export type CertificatePage = {
  readonly after?: string | undefined;
  readonly limit: number;
  readonly allowlistOf?: number | undefined;
};

const byName = compiledQuery((db, name: Expression<string>) =>
  summaries(db).where('certificates.name', '=', name),
);

/** One certificate with the name of its issuer and its current version. */
export async function findCertificateSummary(
  reader: Reader,
  name: string,
): Promise<CertificateSummaryRow | undefined> {
  const [row] = await byName(reader, name);
  return row && summary(row);
}

/** A page by name. */
export async function listCertificateSummaries(
  reader: Reader,
  { after, limit, allowlistOf }: CertificatePage,
): Promise<CertificateSummaryRow[]> {
  let query = summaries(reader).orderBy('certificates.name').limit(limit);
  if (after !== undefined) query = query.where('certificates.name', '>', after);
  if (allowlistOf !== undefined) {
    query = query.where('certificates.id', 'in', ({ selectFrom }) =>
      selectFrom('api_key_certificates').select('certificate_id').where('api_key_id', '=', allowlistOf),
    );
  }
  return (await query.execute()).map(summary);
}

const pageSize = 1000;

/** All certificates by name, page by page; the last page is not full, and may be empty. */
export async function* pagesOfSummaries(reader: Reader): AsyncGenerator<CertificateSummaryRow[]> {
  let after: string | undefined;
  for (;;) {
    const page = await listCertificateSummaries(reader, { after, limit: pageSize });
    yield page;
    if (page.length < pageSize) return;
    after = page.at(-1)?.name;
  }
}

/** A certificate with what determines its renewal schedule. */
export type PlannedRow = CertificateRow & {
  v_not_before: number | null;
  v_not_after: number | null;
  v_serial: string | null;
  v_created_at: number | null;
  v_source: ShownVersionRow['source'] | null;
};

/** Of the certificates that renew automatically, those with these ids. */
export async function listPlanned(reader: Reader, ids: readonly number[]): Promise<PlannedRow[]> {
  return planned(reader).where('certificates.id', 'in', ids).execute();
}

/** At most `limit` of them by id, after the id `after`. */
export async function pagePlanned(reader: Reader, after: number, limit: number): Promise<PlannedRow[]> {
  return planned(reader)
    .where('certificates.id', '>', after)
    .orderBy('certificates.id')
    .limit(limit)
    .execute();
}

function planned(reader: Reader) {
  return summaries(reader)
    .where(({ eb, lit }) => eb('auto_renew', '=', lit(1)))
    .where('certificates.issuer_id', 'is not', null);
}

/** The displayed columns of the joined current version, each under the name that `shownVersion` reads. */
export const shownOfVersion = [
  'certificate_versions.version as v_version',
  'certificate_versions.serial as v_serial',
  'certificate_versions.issuer as v_issuer',
  'certificate_versions.subject as v_subject',
  'certificate_versions.domains as v_domains',
  'certificate_versions.key_type as v_key_type',
  'certificate_versions.fingerprint_sha256 as v_fingerprint_sha256',
  'certificate_versions.not_before as v_not_before',
  'certificate_versions.not_after as v_not_after',
  'certificate_versions.created_at as v_created_at',
  'certificate_versions.source as v_source',
  'certificate_versions.certificate_etag as v_certificate_etag',
  'certificate_versions.chain_etag as v_chain_etag',
  'certificate_versions.fullchain_etag as v_fullchain_etag',
  'certificate_versions.private_key_etag as v_private_key_etag',
] as const;

/** Its other columns. */
const restOfVersion = [
  'certificate_versions.id as v_id',
  'certificate_versions.acme_account_id as v_acme_account_id',
  'certificate_versions.directory_url as v_directory_url',
  'certificate_versions.revoked_at as v_revoked_at',
] as const;

/** Certificates with their issuers and current versions, for queries in this folder. */
export function withCurrentVersions(reader: Builder) {
  return reader
    .selectFrom('certificates')
    .leftJoin('issuers', 'issuers.id', 'certificates.issuer_id')
    .leftJoin('acme_clients', 'acme_clients.id', 'certificates.acme_client_id')
    .leftJoin('certificate_versions', (join) =>
      join
        .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
        .onRef('certificate_versions.version', '=', 'certificates.current_version'),
    );
}

function summaries(reader: Builder) {
  return withCurrentVersions(reader)
    .selectAll('certificates')
    .select(['issuers.name as issuer_name', 'acme_clients.name as owner_name'])
    .select([...shownOfVersion, ...restOfVersion]);
}

type JoinedRow = Awaited<ReturnType<ReturnType<typeof summaries>['executeTakeFirstOrThrow']>>;

/** A row of `summaries` with the current version as a nested object. */
function summary(row: JoinedRow): CertificateSummaryRow {
  const shown = shownVersion(row);
  if (shown === null) return { ...row, current: null };
  const rest = {
    certificate_id: row.id,
    id: row.v_id as number,
    acme_account_id: row.v_acme_account_id,
    directory_url: row.v_directory_url,
    revoked_at: row.v_revoked_at,
  };
  return { ...row, current: { ...shown, ...rest } };
}

/** The columns of a joined version; null if there is none. */
type Joined<Row> = { readonly [Column in keyof Row & string as `v_${Column}`]: Row[Column] | null };

/**
 * The current version in a row that joined `shownOfVersion`, or null if there is none. Each column is written out,
 * because objects with computed property names are slow, and lists create thousands.
 */
export function shownVersion(row: Joined<ShownVersionRow>): ShownVersionRow | null {
  const version = {
    version: row.v_version,
    serial: row.v_serial,
    issuer: row.v_issuer,
    subject: row.v_subject,
    domains: row.v_domains,
    key_type: row.v_key_type,
    fingerprint_sha256: row.v_fingerprint_sha256,
    not_before: row.v_not_before,
    not_after: row.v_not_after,
    created_at: row.v_created_at,
    source: row.v_source,
    certificate_etag: row.v_certificate_etag,
    chain_etag: row.v_chain_etag,
    fullchain_etag: row.v_fullchain_etag,
    private_key_etag: row.v_private_key_etag,
  };
  return row.v_version === null ? null : (version as ShownVersionRow);
}
