/** Starts, lists and deletes scans: searches of networks for TLS servers. */
import { formatLifetime } from '../../base/duration.ts';
import { parseJson, toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import {
  deleteScan as deleteRow,
  findScan,
  insertScan,
  type ListedScanRow,
  listScans as listRows,
} from '../../db/tables/scans.ts';
import { type IpNetwork, isNetworkInside, parseIpNetwork } from '../../net/ip-network.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { type CreateScanInput, connectionsOf } from './scan-inputs.ts';

export type ScanState = 'waiting' | 'running' | 'finished';

export type ScanView = {
  id: number;
  networks: string[];
  ports: number[];
  /** Connections per second. */
  rate: number;
  /** Between two runs; null for a scan that runs once. */
  interval: string | null;
  state: ScanState;
  /** Addresses and ports of the latest run that are done, of `total`. */
  done: number;
  total: number;
  found: number;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  /** null while it runs, and after the only run. */
  next_run_at: string | null;
};

/** Where scans may search besides private networks. */
export type ScanRules = { readonly scannable: readonly IpNetwork[] };

/** The maximum number of scans of a vault. */
export const maxScans = 100;

/** RFC 1918 and RFC 4193. */
const privateNetworks = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'].map(networkOf);

/** How long a process may work on a scan without storing its progress. */
export const claimDuration = 60_000;

/**
 * Adds a scan, which is due immediately, and returns its id. With `claimedUntil` the caller works on it itself. Throws
 * `invalid_request` for networks that may not be searched, and `too_many_scans`.
 */
export async function createScan(
  vault: TimedContext & ScanRules,
  actor: Actor,
  { networks, ports, rate, interval }: CreateScanInput,
  claimedUntil = 0,
): Promise<number> {
  const { db, world } = vault;
  refuseForeign(networks, vault);
  return db.write(async (writer) => {
    const now = world.now();
    if ((await listRows(writer)).length >= maxScans) {
      throw new Problem('too_many_scans', {
        detail: `The vault has ${maxScans} scans, the maximum.`,
        hint: 'Try: vault endpoint scans',
      });
    }
    const texts = networks.map(({ text }) => text);
    const id = await insertScan(writer, {
      ...{ networks: toJson(texts), ports: toJson(ports), rate, run_every: interval ?? null },
      ...{ created_at: now, total: connectionsOf(networks, ports) },
      ...{ started_at: null, finished_at: null, due_at: now, claimed_until: claimedUntil },
    });
    const detail = { networks: texts, ports, rate, interval: interval && formatLifetime(interval) };
    record(writer, { actor, action: 'scan.create', resource: `scan:${id}`, detail }, now);
    return id;
  });
}

/** The first of the networks that may not be searched. */
export function foreignNetwork(
  networks: readonly IpNetwork[],
  { scannable }: ScanRules,
): IpNetwork | undefined {
  const allowed = [...privateNetworks, ...scannable];
  return networks.find((one) => !isNetworkInside(one, allowed));
}

function refuseForeign(networks: readonly IpNetwork[], rules: ScanRules): void {
  const foreign = foreignNetwork(networks, rules);
  if (foreign === undefined) return;
  const message = `${foreign.text} is not a private network`;
  throw new Problem('invalid_request', {
    detail: `networks: ${message}.`,
    errors: [{ path: 'networks', message }],
    hint: `To search other networks of yours: --endpoint-allow ${foreign.text} (in vault.yaml: endpoint_allow: "${foreign.text}")`,
  });
}

/** The networks of a row. */
export function networksOf({ networks }: Pick<ListedScanRow, 'networks'>): IpNetwork[] {
  return parseJson(networks).map(networkOf);
}

function networkOf(text: string): IpNetwork {
  const network = parseIpNetwork(text);
  if (network === undefined) throw new Error(`${text} is not a network`);
  return network;
}

/** All scans, in the order of their creation. */
export async function listScans({ db }: DatabaseContext): Promise<ScanView[]> {
  return (await listRows(db.reader)).map(scanView);
}

/** Throws `scan_not_found`. */
export async function requireScan({ db }: DatabaseContext, id: number): Promise<ListedScanRow> {
  const row = Number.isSafeInteger(id) ? await findScan(db.reader, id) : undefined;
  if (row !== undefined) return row;
  throw new Problem('scan_not_found', { hint: 'Try: vault endpoint scans' });
}

/** Deletes a scan with what it found; a run ends. Throws `scan_not_found`. */
export async function deleteScan(vault: TimedContext, actor: Actor, id: number): Promise<void> {
  const { networks } = await requireScan(vault, id);
  await vault.db.write(async (writer) => {
    await deleteRow(writer, id);
    const detail = { networks: parseJson(networks) };
    record(writer, { actor, action: 'scan.delete', resource: `scan:${id}`, detail }, vault.world.now());
  });
}

/** A scan as the API and the commands show it. */
export function scanView(row: ListedScanRow): ScanView {
  const isRunning = row.started_at !== null && row.finished_at === null;
  const state = isRunning ? 'running' : row.due_at === null ? 'finished' : 'waiting';
  return {
    id: row.id,
    networks: parseJson(row.networks),
    ports: parseJson(row.ports),
    rate: row.rate,
    interval: row.run_every === null ? null : formatLifetime(row.run_every),
    state,
    done: row.position,
    total: row.total,
    found: row.found,
    created_at: formatTimestamp(row.created_at),
    started_at: formatTimestampOrNull(row.started_at),
    finished_at: formatTimestampOrNull(row.finished_at),
    next_run_at: state === 'waiting' ? formatTimestampOrNull(row.due_at) : null,
  };
}
