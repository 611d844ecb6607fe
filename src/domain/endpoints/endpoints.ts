/** Endpoints as lists show them, and counted by state. */
import { X509Certificate } from 'node:crypto';
import { formatLifetime } from '../../base/duration.ts';
import { parseJsonOr } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { readPemBlocks } from '../../crypto/pem.ts';
import { titleOf } from '../../crypto/x509/certificate-facts.ts';
import type { Reader } from '../../db/database.ts';
import type { EndpointTrust } from '../../db/schema/schema-endpoints.ts';
import {
  type EndpointFactsRow,
  type EndpointPage,
  findEndpoint,
  type ListedEndpointRow,
  pageEndpointFacts,
  pageEndpoints,
} from '../../db/tables/endpoints.ts';
import { nextRange } from '../../db/tables/id-ranges.ts';
import type { StartTls } from '../../net/starttls.ts';
import type { TimedContext } from '../contexts.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { addressText } from './endpoint-inputs.ts';
import { type EndpointState, endpointState, endpointStates } from './endpoint-state.ts';

/** An endpoint with its state. */
export type Endpoint = ListedEndpointRow & { readonly state: EndpointState };

export type EndpointView = {
  id: number;
  /** `host:port` */
  address: string;
  certificate: string | null;
  server_name: string;
  starttls: StartTls | null;
  trust: EndpointTrust;
  /** The subjects of the certificates of a bundle. */
  ca_subjects: string[];
  interval: string;
  state: EndpointState;
  /** Why it is not current. */
  reason: string | null;
  version: number | null;
  current_version: number | null;
  /** Since when the vault has the version that should be served. */
  outdated_since: string | null;
  fingerprint_sha256: string | null;
  issuer: string | null;
  names: string[];
  not_before: string | null;
  not_after: string | null;
  tls_version: string | null;
  chain_complete: boolean | null;
  verifies: boolean | null;
  ocsp_stapled: boolean | null;
  /** Why the last check failed. */
  error: string | null;
  created_at: string;
  checked_at: string | null;
  next_check_at: string;
  changed_at: string | null;
};

/** Which endpoints; what is undefined does not matter. */
export type EndpointSearch = Pick<EndpointPage, 'labels' | 'reach' | 'limit'> & {
  /** The name of a certificate. */
  readonly certificate?: string | undefined;
  readonly state?: EndpointState | undefined;
  /** Only those after the one with this number. */
  readonly after?: number | undefined;
};

/** Endpoints that a query looks through: a few milliseconds of work. */
const scannedAtOnce = 500;

/** The endpoints that match, in the order of their creation, in portions. Throws `certificate_not_found`. */
export async function* findEndpoints(
  { db, world }: TimedContext,
  { certificate, state, labels, reach, after = 0, limit }: EndpointSearch,
): AsyncGenerator<readonly Endpoint[]> {
  const certificateId =
    certificate === undefined ? undefined : (await requireCertificate(db.reader, certificate)).id;
  const now = world.now();
  let from = after;
  for (let left = limit; left > 0; ) {
    const range =
      certificateId === undefined ? await nextRange(db.reader, 'endpoints', from, scannedAtOnce) : undefined;
    if (certificateId === undefined && range === undefined) return;
    const page = { certificateId, labels, reach, after: from, last: range?.last, limit: scannedAtOnce };
    const rows = await pageEndpoints(db.reader, page);
    const matches = rows
      .map((row) => withState(row, now))
      .filter((row) => state === undefined || row.state === state)
      .slice(0, left);
    yield matches;
    left -= matches.length;
    if (certificateId !== undefined && rows.length < scannedAtOnce) return;
    from = range?.last ?? rows.at(-1)?.id ?? from;
    if (left > 0) await world.turn();
  }
}

/** The row with its state at `now`, UTC milliseconds. */
export function withState(row: ListedEndpointRow, now: number): Endpoint {
  return { ...row, state: endpointState(row, now) };
}

/** The endpoint with this id. Throws `endpoint_not_found`. */
export async function requireEndpoint(reader: Reader, id: number): Promise<ListedEndpointRow> {
  const row = Number.isSafeInteger(id) ? await findEndpoint(reader, id) : undefined;
  if (row !== undefined) return row;
  throw new Problem('endpoint_not_found', { hint: 'Try: vault endpoint list' });
}

/** Why the endpoint is not current, as a clause; null if it is. */
export function reasonFor(row: Endpoint): string | null {
  switch (row.state) {
    case 'current':
      return null;
    case 'unchecked':
      return 'not checked yet';
    case 'unreachable':
      return row.error;
    case 'unknown':
      return `not a version of certificate ${row.certificate}`;
    case 'outdated':
      return `version ${row.version} instead of ${row.current_version}`;
    case 'untrusted':
      return row.problem;
    case 'expiring':
      return row.not_after === null ? null : `expires at ${formatTimestamp(row.not_after)}`;
  }
}

/** An endpoint as the API and the commands show it. */
export function endpointView(row: Endpoint, now: number): EndpointView {
  const { id, certificate, server_name, trust, state, version, current_version, issuer, tls_version } = row;
  const isValid =
    row.not_before !== null && row.not_after !== null && row.not_before <= now && now < row.not_after;
  return {
    id,
    address: addressText(row),
    certificate,
    server_name,
    starttls: row.starttls as StartTls | null,
    trust,
    ca_subjects: row.ca_pem === null ? [] : subjectsOf(row.ca_pem),
    interval: formatLifetime(row.check_every),
    state,
    reason: reasonFor(row),
    version,
    current_version,
    outdated_since: state === 'outdated' ? formatTimestampOrNull(row.current_since) : null,
    fingerprint_sha256: row.fingerprint_sha256,
    issuer,
    names: parseJsonOr(row.names, []),
    not_before: formatTimestampOrNull(row.not_before),
    not_after: formatTimestampOrNull(row.not_after),
    tls_version,
    chain_complete: row.chain_complete === null ? null : row.chain_complete === 1,
    verifies: row.fingerprint_sha256 === null ? null : row.problem === null && isValid,
    ocsp_stapled: row.ocsp_stapled === null ? null : row.ocsp_stapled === 1,
    error: row.error,
    created_at: formatTimestamp(row.created_at),
    checked_at: formatTimestampOrNull(row.checked_at),
    next_check_at: formatTimestamp(row.next_check_at),
    changed_at: formatTimestampOrNull(row.changed_at),
  };
}

/** More are of no use to a reader. */
const maxSubjects = 20;

function subjectsOf(pem: string): string[] {
  const blocks = readPemBlocks(pem).slice(0, maxSubjects);
  return blocks.map(({ der }) => titleOf(new X509Certificate(der)));
}

/** How many endpoints there are in each state. */
export async function countEndpoints(vault: TimedContext): Promise<Record<EndpointState, number>> {
  const now = vault.world.now();
  const counts = Object.fromEntries(endpointStates.map((state) => [state, 0])) as Record<
    EndpointState,
    number
  >;
  for await (const rows of endpointFacts(vault)) {
    for (const row of rows) counts[endpointState(row, now)] += 1;
  }
  return counts;
}

async function* endpointFacts({ db, world }: TimedContext): AsyncGenerator<readonly EndpointFactsRow[]> {
  for (let after = 0; ; ) {
    const rows = await pageEndpointFacts(db.reader, after, scannedAtOnce);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < scannedAtOnce) return;
    after = last.id;
    await world.turn();
  }
}
