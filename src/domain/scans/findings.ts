/** The TLS servers that scans found. */
import { parseJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import {
  type FindingRow,
  findFinding,
  findFindingAt,
  type ListedFindingRow,
  pageFindings,
} from '../../db/tables/scans.ts';
import type { StartTls } from '../../net/starttls.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { addressText, parseAddress } from '../endpoints/endpoint-inputs.ts';

export type FindingView = {
  id: number;
  /** `address:port` */
  address: string;
  starttls: StartTls | null;
  /** The certificate of the vault that is served there; null for one that the vault does not have. */
  certificate: string | null;
  version: number | null;
  fingerprint_sha256: string;
  issuer: string;
  names: string[];
  not_before: string;
  not_after: string;
  /** Whether the address is an endpoint already. */
  endpoint: boolean;
  scan: number;
  first_seen_at: string;
  seen_at: string;
};

/** With the certificates that the server sent. */
export type WholeFinding = FindingView & { chain_pem: string };

/** Which findings; what is undefined does not matter. */
export type FindingSearch = {
  readonly scan?: number | undefined;
  /** Only certificates that the vault has, or only others. */
  readonly known?: boolean | undefined;
  readonly after?: number | undefined;
  readonly limit: number;
};

/** Findings that a query reads: a few milliseconds of work. */
const readAtOnce = 500;

/** The findings that match, in the order in which they were first seen, in portions. */
export async function* findFindings(
  { db, world }: TimedContext,
  { scan, known, after = 0, limit }: FindingSearch,
): AsyncGenerator<readonly ListedFindingRow[]> {
  let from = after;
  for (let left = limit; left > 0; ) {
    const page = { scanId: scan, known, after: from, limit: Math.min(left, readAtOnce) };
    const rows = await pageFindings(db.reader, page);
    yield rows;
    left -= rows.length;
    if (rows.length < page.limit) return;
    from = rows.at(-1)?.id ?? from;
    await world.turn();
  }
}

/** The finding with this id. Throws `finding_not_found`. */
export async function requireFinding({ db }: DatabaseContext, id: number): Promise<FindingRow> {
  const row = Number.isSafeInteger(id) ? await findFinding(db.reader, id) : undefined;
  if (row !== undefined) return row;
  throw new Problem('finding_not_found', { hint: 'Try: vault endpoint found' });
}

/** The finding at `address:port`, whose port is 443 if it is omitted. Throws `finding_not_found`. */
export async function findingAt({ db }: DatabaseContext, text: string): Promise<FindingRow> {
  const { host, port } = addressFrom(text);
  const row = await findFindingAt(db.reader, host, port);
  if (row !== undefined) return row;
  throw nothingFoundAt(text);
}

/** For an address that no scan found. */
export function nothingFoundAt(text: string): Problem {
  return new Problem('finding_not_found', {
    detail: `No scan found a server at ${addressText(addressFrom(text))}.`,
    hint: 'Try: vault endpoint found --all',
  });
}

/** The address of a finding, whose port is 443 if it is omitted. */
export function addressFrom(text: string): { readonly host: string; readonly port: number } {
  const { host = text, port = 443 } = parseAddress(text) ?? {};
  return { host, port };
}

/** A finding as the API and the commands show it. */
export function findingView(row: ListedFindingRow): FindingView {
  return {
    id: row.id,
    address: addressText(row),
    starttls: row.starttls as StartTls | null,
    certificate: row.certificate,
    version: row.certificate === null ? null : row.version,
    fingerprint_sha256: row.fingerprint_sha256,
    issuer: row.issuer,
    names: parseJson(row.names),
    not_before: formatTimestamp(row.not_before),
    not_after: formatTimestamp(row.not_after),
    endpoint: Number(row.is_endpoint) === 1,
    scan: row.scan_id,
    first_seen_at: formatTimestamp(row.first_seen_at),
    seen_at: formatTimestamp(row.seen_at),
  };
}

/** `findingView` with the certificates that the server sent. */
export function wholeFinding(row: FindingRow): WholeFinding {
  return { ...findingView(row), chain_pem: row.chain_pem };
}
