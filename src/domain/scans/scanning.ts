/**
 * Searches the networks of a scan for TLS servers, a portion at a time: what was found and how far the run came is
 * stored together, so another process can continue it.
 */
import { second } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { encodePem } from '../../crypto/pem.ts';
import { factsOf } from '../../crypto/x509/certificate-facts.ts';
import { listVersionsWithSerial } from '../../db/tables/certificates/certificate-versions.ts';
import {
  deleteFindingsBefore,
  dueScan,
  findScan,
  hasFindings,
  type ListedScanRow,
  type SeenServer,
  storeFinding,
  updateClaimedScan,
} from '../../db/tables/scans.ts';
import { addressIn, type IpNetwork, sizeOf } from '../../net/ip-network.ts';
import type { OutboundGuard } from '../../net/outbound-guard.ts';
import { type Probe, ProbeFailure, probeTls } from '../../net/tls-probe.ts';
import { record, system } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';
import { storedFacts } from '../endpoints/endpoint-checking.ts';
import { usualProtocol } from '../endpoints/endpoint-inputs.ts';
import { notifyFound } from '../notifications/notification-scans.ts';
import { maxRate } from './scan-inputs.ts';
import { claimDuration, foreignNetwork, networksOf, type ScanRules } from './scans.ts';

export type ScanContext = TimedContext &
  ScanRules & {
    /** The addresses that scans may connect to. */
    readonly endpointGuard: OutboundGuard;
  };

/** The maximum number of servers that the vault stores. */
export const maxFindings = 20_000;

/** For one address and port: servers that take longer are overloaded, or behind a firewall that drops packets. */
const probeLimit = 3 * second;

/** A portion takes about as long, and a crash repeats at most one. */
const portionTime = 5 * second;

/** A larger chain is not kept. */
const maxChain = 16_384;

/**
 * The id of the scan that is due for the longest time, that no process works on and that is not among `running`;
 * undefined for none.
 */
export async function nextScan(
  { db, world }: TimedContext,
  running: readonly number[] = [],
): Promise<number | undefined> {
  return dueScan(db.reader, world.now(), running);
}

/** How a caller works on a scan. */
export type ScanWork = {
  /** The claim of the caller itself, if it created the scan with one. */
  readonly held?: number;
  /** Gets the scan after each portion. */
  readonly onProgress?: (row: ListedScanRow) => void;
};

/**
 * Works on the scan until its run has ended, the scan is deleted or `signal` is aborted; another process can go on
 * then. Returns false if it is not due or another process works on it.
 */
export async function workOnScan(
  vault: ScanContext,
  id: number,
  signal: AbortSignal,
  { held, onProgress }: ScanWork = {},
): Promise<boolean> {
  const { db, world } = vault;
  let row = await claim(vault, id, held);
  if (row === undefined) return false;
  try {
    while (row !== undefined && row.position < row.total && !signal.aborted) {
      row = await workOnPortion(vault, row, signal);
      if (row !== undefined) onProgress?.(row);
    }
  } catch (error) {
    const failed = row;
    if (failed !== undefined) {
      // Other scans come first. If this cannot be stored either, the claim ends by itself.
      const later = { claimed_until: 0, due_at: world.now() + claimDuration };
      await db.write((writer) => updateClaimedScan(writer, failed, later)).catch(() => false);
    }
    throw error;
  }
  if (row !== undefined && row.position < row.total) {
    await db.write((writer) => updateClaimedScan(writer, row, { claimed_until: 0 }));
  }
  return true;
}

/** Takes a scan that is due, and begins its run unless it has begun. */
async function claim(
  vault: ScanContext,
  id: number,
  held: number | undefined,
): Promise<ListedScanRow | undefined> {
  const { db, world } = vault;
  return db.write(async (writer) => {
    const now = world.now();
    const row = await findScan(writer, id);
    if (row === undefined || row.due_at === null || row.due_at > now) return undefined;
    if (row.claimed_until > now && row.claimed_until !== held) return undefined;
    const foreign = foreignNetwork(networksOf(row), vault);
    if (foreign !== undefined) {
      // The settings may have changed since the scan was added.
      await updateClaimedScan(writer, row, { due_at: null, claimed_until: 0, finished_at: now });
      const detail = { networks: parseJson(row.networks), refused: foreign.text };
      record(writer, { actor: system, action: 'scan.finish', resource: `scan:${id}`, detail }, now);
      return undefined;
    }
    const isNew = row.started_at === null || row.finished_at !== null;
    const changes = {
      claimed_until: now + claimDuration,
      ...(isNew && { started_at: now, finished_at: null, position: 0 }),
    };
    return (await updateClaimedScan(writer, row, changes)) ? { ...row, ...changes } : undefined;
  });
}

/** Returns the row as it is now; undefined if another process works on it or the scan was deleted. */
async function workOnPortion(
  vault: ScanContext,
  row: ListedScanRow,
  signal: AbortSignal,
): Promise<ListedScanRow | undefined> {
  const { db, world } = vault;
  const end = Math.min(row.total, row.position + Math.ceil((rateOf(row) * portionTime) / second));
  const seen = await probePortion(vault, row, end, signal);
  if (signal.aborted) return row;
  const isEnd = end === row.total;
  return db.write(async (writer) => {
    const now = world.now();
    const changes = {
      position: end,
      claimed_until: isEnd ? 0 : now + claimDuration,
      ...(isEnd && { finished_at: now, due_at: row.run_every === null ? null : now + row.run_every }),
    };
    if (!(await updateClaimedScan(writer, row, changes))) return undefined;
    const isFull = await hasFindings(writer, maxFindings + 1 - seen.length);
    for (const one of seen) await storeFinding(writer, { ...one, seen_at: now }, isFull);
    if (isEnd) {
      await deleteFindingsBefore(writer, row.id, row.started_at ?? 0);
      const found = (await findScan(writer, row.id))?.found ?? 0;
      const detail = { networks: parseJson(row.networks), connections: row.total, found };
      record(writer, { actor: system, action: 'scan.finish', resource: `scan:${row.id}`, detail }, now);
      if (row.run_every !== null) await notifyFound(vault, writer, row);
    }
    return { ...row, ...changes };
  });
}

/** Connections per second: a row may hold any number. */
function rateOf({ rate }: ListedScanRow): number {
  return Math.min(Math.max(rate, 1), maxRate);
}

type Finding = Omit<SeenServer, 'seen_at'>;

/**
 * The TLS servers among these addresses and ports, by their number in the run. Certificates are read as they arrive,
 * so that the many of a portion do not hold up other work together.
 */
async function probePortion(
  vault: ScanContext,
  row: ListedScanRow,
  end: number,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { world } = vault;
  const networks = networksOf(row);
  const ports: readonly number[] = parseJson(row.ports);
  const addresses = networks.reduce((sum, one) => sum + sizeOf(one), 0);
  const seen: Finding[] = [];
  const running: Promise<void>[] = [];
  for (let at = row.position; at < end && !signal.aborted; at += 1) {
    const host = addressAt(networks, at % addresses);
    const port = ports[Math.floor(at / addresses)] ?? 0;
    const probing = probeAt(vault, { host, port }, signal).then(async (probe) => {
      if (probe !== undefined) seen.push(await findingOf(vault, row.id, { host, port, probe }));
    });
    running.push(probing);
    // It is awaited below, with all others.
    probing.catch(() => undefined);
    await world.sleep(second / rateOf(row), signal);
  }
  await Promise.all(running);
  return seen;
}

/** All ports of a server are far from each other in the run: none gets many connections together. */
function addressAt(networks: readonly IpNetwork[], index: number): string {
  let left = index;
  for (const network of networks) {
    const size = sizeOf(network);
    if (left < size) return addressIn(network, left);
    left -= size;
  }
  throw new Error(`${index} is beyond the networks`);
}

async function probeAt(
  { world, endpointGuard: guard }: ScanContext,
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<Probe | undefined> {
  const target = { host, port, serverName: '', starttls: usualProtocol(port), limit: probeLimit };
  try {
    return await probeTls({ world, guard }, target, signal);
  } catch (error) {
    if (error instanceof ProbeFailure) return undefined;
    throw error;
  }
}

async function findingOf(
  { db }: ScanContext,
  scanId: number,
  { host, port, probe }: { readonly host: string; readonly port: number; readonly probe: Probe },
): Promise<Finding> {
  const facts = factsOf(probe.certificates[0]);
  const versions = await listVersionsWithSerial(db.reader, facts.serial);
  const own = versions.find((one) => one.fingerprint_sha256 === facts.fingerprintSha256);
  const chain = probe.certificates.map(({ raw }) => encodePem('CERTIFICATE', raw)).join('');
  return {
    ...{ scan_id: scanId, host, port, starttls: usualProtocol(port) },
    ...{ certificate_id: own?.certificate_id ?? null, version: own?.version ?? null },
    ...storedFacts(facts),
    chain_pem: chain.length > maxChain ? '' : chain,
  };
}
