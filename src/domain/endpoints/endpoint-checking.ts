/** Checks what endpoints serve: news are written and recorded, everything else is written behind. */
import { X509Certificate } from 'node:crypto';
import { toJson } from '../../base/json.ts';
import { readPemBlocks } from '../../crypto/pem.ts';
import { factsOf } from '../../crypto/x509/certificate-facts.ts';
import { Anchors, judgeServed, publicAnchors } from '../../crypto/x509/served-chain.ts';
import { findVersion, listVersionsWithSerial } from '../../db/tables/certificates/certificate-versions.ts';
import {
  dueEndpoints,
  type EndpointRow,
  findEndpoint,
  type ListedEndpointRow,
  updateEndpoint,
} from '../../db/tables/endpoints.ts';
import type { OutboundGuard } from '../../net/outbound-guard.ts';
import type { StartTls } from '../../net/starttls.ts';
import { type Probe, ProbeFailure, probeTls } from '../../net/tls-probe.ts';
import type { KeyUse } from '../access/key-use.ts';
import { record, system } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';
import { trustedRoots } from '../private-ca/ca-chains.ts';
import { listPrivateCas } from '../private-ca/ca-expiry.ts';
import { resourceOf } from './endpoint-changes.ts';
import { endpointState, failuresBeforeUnreachable, untilNextCheck } from './endpoint-state.ts';
import { type Endpoint, requireEndpoint, withState } from './endpoints.ts';

export type CheckContext = TimedContext & {
  /** The addresses that checks may connect to. */
  readonly endpointGuard: OutboundGuard;
  readonly keyUse: Pick<KeyUse, 'noteEndpoint' | 'forgetEndpoint'>;
};

/** What a check that found a certificate learned. */
const seenColumns = [
  ...(['version', 'fingerprint_sha256', 'serial', 'issuer', 'names'] as const),
  ...(['not_before', 'not_after', 'chain_complete', 'problem'] as const),
] as const;

type Seen = Pick<EndpointRow, (typeof seenColumns)[number] | 'tls_version' | 'ocsp_stapled'>;

type Outcome = Pick<EndpointRow, 'failures' | 'error'> & { readonly seen: Seen | undefined };

/** A check that is due, and what made it so. */
export type DueCheck = Awaited<ReturnType<typeof dueEndpoints>>[number];

/** At most `limit` checks that are due, the longest overdue first. */
export function dueChecks({ db, world }: TimedContext, limit: number): Promise<DueCheck[]> {
  return dueEndpoints(db.reader, world.now(), limit);
}

/** Checks the endpoint with this id now, and returns it with its new state. Throws `endpoint_not_found`. */
export async function checkEndpoint(vault: CheckContext, id: number, signal: AbortSignal): Promise<Endpoint> {
  const { db, world, keyUse } = vault;
  const row = await requireEndpoint(db.reader, id);
  const outcome = await outcomeOf(vault, row, signal);
  // A check that was stopped says nothing about the endpoint.
  signal.throwIfAborted();
  const now = world.now();
  const after = {
    ...row,
    ...outcome.seen,
    failures: outcome.failures,
    error: outcome.error,
    checked_at: now,
  };
  const look = {
    ...{ id, revision: row.revision, was_due_at: row.next_check_at, checked_at: now },
    next_check_at: now + withJitter(vault, untilNextCheck(after, row.check_every, now)),
    ...{ failures: after.failures, error: after.error },
    ...{ tls_version: after.tls_version, ocsp_stapled: after.ocsp_stapled },
  };
  if (!isNews(row, after)) {
    keyUse.noteEndpoint(look);
    return withState({ ...after, next_check_at: look.next_check_at }, now);
  }
  keyUse.forgetEndpoint(id);
  await db.write(async (writer) => {
    const current = await findEndpoint(writer, id);
    // Changed or removed meanwhile: this check was about something else.
    if (current === undefined || current.revision !== row.revision) return;
    const { was_due_at: due, next_check_at: next, ...stored } = look;
    await updateEndpoint(writer, id, {
      ...stored,
      ...outcome.seen,
      changed_at: now,
      next_check_at: current.next_check_at === due ? next : current.next_check_at,
    });
    const detail = { id, certificate: row.certificate, ...newsOf(after, now), previous: newsOf(row, now) };
    const resource = resourceOf(row);
    record(writer, { actor: system, action: 'endpoint.observe', resource, detail }, now);
  });
  return withState({ ...after, changed_at: now, next_check_at: look.next_check_at }, now);
}

async function outcomeOf(vault: CheckContext, row: ListedEndpointRow, signal: AbortSignal): Promise<Outcome> {
  const { host, port, server_name: serverName } = row;
  const target = { host, port, serverName, starttls: row.starttls as StartTls | null };
  try {
    const probe = await probeTls({ world: vault.world, guard: vault.endpointGuard }, target, signal);
    return { failures: 0, error: null, seen: await judged(vault, row, probe) };
  } catch (error) {
    if (!(error instanceof ProbeFailure)) throw error;
    return { failures: row.failures + 1, error: error.message, seen: undefined };
  }
}

async function judged(vault: CheckContext, row: ListedEndpointRow, probe: Probe): Promise<Seen> {
  const { db, world } = vault;
  const facts = factsOf(probe.certificates[0]);
  const version = row.certificate_id === null ? undefined : await versionOf(vault, row.certificate_id, facts);
  const stored =
    version === undefined || row.trust !== 'auto' || row.certificate_id === null
      ? undefined
      : await findVersion(db.reader, row.certificate_id, version);
  const { isComplete, problem } = judgeServed({
    certificates: probe.certificates,
    trusted: await anchorsFor(vault, row),
    name: row.server_name || row.host,
    known: stored && certificatesIn(stored.chain_pem),
    now: world.now(),
  });
  return {
    version: version ?? null,
    ...storedFacts(facts),
    serial: facts.serial.slice(0, maxText),
    chain_complete: isComplete ? 1 : 0,
    problem: problem ?? null,
    tls_version: probe.tlsVersion,
    ocsp_stapled: probe.isStapled ? 1 : 0,
  };
}

const maxNames = 100;
/** A longer name is no DNS name. */
const maxName = 253;
const maxText = 500;

/** What checks and scans store of a certificate. A server chooses what it sends: the rest is not stored. */
export function storedFacts({
  fingerprintSha256,
  issuer,
  domains,
  notBefore,
  notAfter,
}: ReturnType<typeof factsOf>) {
  const names = domains.filter((name) => name.length <= maxName).slice(0, maxNames);
  return {
    fingerprint_sha256: fingerprintSha256,
    issuer: issuer.slice(0, maxText),
    names: toJson(names),
    not_before: notBefore,
    not_after: notAfter,
  };
}

async function versionOf(
  { db }: CheckContext,
  certificateId: number,
  { serial, fingerprintSha256 }: ReturnType<typeof factsOf>,
): Promise<number | undefined> {
  const versions = await listVersionsWithSerial(db.reader, serial);
  return versions.find(
    (one) => one.certificate_id === certificateId && one.fingerprint_sha256 === fingerprintSha256,
  )?.version;
}

async function anchorsFor(vault: CheckContext, { trust, ca_pem }: EndpointRow): Promise<Anchors[]> {
  if (trust === 'bundle') return [new Anchors(certificatesIn(ca_pem ?? ''))];
  const isPublic = trust !== 'private-ca';
  const isPrivate = trust !== 'public';
  return [...(isPrivate ? [await privateAnchors(vault)] : []), ...(isPublic ? [publicAnchors()] : [])];
}

async function privateAnchors({ db, world }: TimedContext): Promise<Anchors> {
  const roots: X509Certificate[] = [];
  for (const { id } of await listPrivateCas(db.reader)) {
    const rows = await trustedRoots(db.reader, id, world.now());
    roots.push(...rows.map(({ certificate }) => new X509Certificate(certificate)));
  }
  return new Anchors(roots);
}

function certificatesIn(pem: string): X509Certificate[] {
  return readPemBlocks(pem).map(({ der }) => new X509Certificate(der));
}

/** Whether the certificate, its judgment or the state of an outage changed. */
function isNews(before: ListedEndpointRow, after: ListedEndpointRow): boolean {
  return isOut(before) !== isOut(after) || seenColumns.some((column) => before[column] !== after[column]);
}

function isOut({ failures, fingerprint_sha256 }: EndpointRow): boolean {
  return failures >= failuresBeforeUnreachable || (failures > 0 && fingerprint_sha256 === null);
}

function newsOf(row: ListedEndpointRow, now: number) {
  const { fingerprint_sha256, version, problem } = row;
  return {
    state: endpointState(row, now),
    fingerprint_sha256,
    version,
    problem,
    error: isOut(row) ? row.error : null,
  };
}

/** Up to a tenth less or more, so that endpoints that were added together spread. */
function withJitter({ world }: TimedContext, wait: number): number {
  return Math.round(wait * (0.9 + (0.2 * world.randomBytes(2).readUInt16BE()) / 65_536));
}
