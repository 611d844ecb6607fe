/**
 * The queue of renewals, with at most one open per certificate. The issuer is chosen when the renewal is queued and
 * again while it waits.
 */
import type { Identifier } from '../../base/identifier.ts';
import { parseJson } from '../../base/json.ts';
import type { Signal } from '../../base/signal.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import { type CertificateRow, findCertificateById } from '../../db/tables/certificates/certificates.ts';
import { listDnsProviders } from '../../db/tables/issuance/dns-providers.ts';
import { findAcmeIssuer } from '../../db/tables/issuance/issuers.ts';
import {
  findOpenRenewal,
  findRenewal,
  insertRenewal,
  pageQueuedRenewals,
  type QueuedRenewal,
  type RenewalRow,
  updateRenewal,
} from '../../db/tables/renewals/renewals.ts';
import { listWaitingRenewals } from '../../db/tables/renewals/waiting-renewals.ts';
import { challengeName, longestZone } from '../../dns/resolver/zones.ts';
import { type Actor, record, system } from '../audit/audit.ts';
import type { TimedContext, WorldContext } from '../contexts.ts';
import { nameSetOf } from '../orders/issuance-limits.ts';
import { renewalFacts } from '../schedule/renewal-plan.ts';
import { isNearExpiry, turnOf, urgentAt } from '../schedule/renewal-policy.ts';

/** Queues renewals and wakes the worker of this process. */
export type QueueContext = TimedContext & { readonly renewalQueued: Signal };

/** The hold reason of renewals that were queued together. */
export const spreadReason = 'spread over time with other renewals';

/**
 * Queues a renewal in the caller's transaction, or returns the one that is already open. If that one only waits because
 * it was queued with others, it no longer does.
 */
export async function queueRenewal(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  certificate: CertificateRow,
): Promise<RenewalRow> {
  const open = await findOpenRenewal(writer, certificate.id);
  if (open?.hold_reason === spreadReason) {
    const changes = { held_until: null, hold_reason: null };
    await updateRenewal(writer, open.id, changes);
    return { ...open, ...changes };
  }
  if (open !== undefined) return open;
  const now = world.now();
  const { current_version: number } = certificate;
  const current = number === null ? undefined : await findVersion(writer, certificate.id, number);
  const facts = renewalFacts(certificate, current, now);
  const names = parseJson(certificate.domains);
  const id = await insertRenewal(writer, {
    certificate_id: certificate.id,
    requested_by: actor.name,
    requested_at: now,
    issuer_id: await chooseIssuer(writer, certificate, now),
    urgent_at: urgentAt(facts, actor.name === system.name ? 'schedule' : 'person'),
    dns_lane: await dnsLane(writer, certificate, names),
    name_set: nameSetOf(names),
  });
  const resource = `certificate:${certificate.name}`;
  record(writer, { actor, action: 'renewal.request', resource, detail: { renewal: id } }, now);
  const row = await findRenewal(writer, id);
  if (row === undefined) throw new Error(`renewal ${id} vanished in its own transaction`);
  return row;
}

/** Queued renewals read at a time: a few milliseconds of work. */
const queuedAtOnce = 2500;

/** All queued renewals in the order of their certificates, in portions. */
export async function* queuedRenewals({ db, world }: TimedContext): AsyncGenerator<readonly QueuedRenewal[]> {
  for (let past = 0; ; ) {
    const queued = await pageQueuedRenewals(db.reader, past, queuedAtOnce);
    if (queued.length > 0) yield queued;
    if (queued.length < queuedAtOnce) return;
    past = queued.at(-1)?.certificate_id ?? past;
    await world.turn();
  }
}

/** A renewal that has been unclaimed for this long is stuck behind an issuer that does not respond. */
const longWait = 60 * 60_000;

/**
 * Moves renewals that wait for an issuer (it is paused, rate limited or overloaded) to the other issuer of their
 * certificate, once that is close to its expiry. Examines at most `limit` renewals. Returns how many were moved.
 */
export async function redirectWaiting(vault: TimedContext, limit: number): Promise<number> {
  const { db, world } = vault;
  const now = world.now();
  const which = { now, since: now - longWait, limit };
  let waiting: RenewalRow[] = [];
  for await (const queued of queuedRenewals(vault)) {
    const ids = queued.map((row) => row.certificate_id);
    const range = { after: Math.min(...ids) - 1, last: Math.max(...ids) };
    waiting = [...waiting, ...(await listWaitingRenewals(db.reader, which, range))]
      .toSorted((one, other) => one.urgent_at - other.urgent_at)
      .slice(0, limit);
  }
  const moved: { id: number; issuer: number }[] = [];
  for (const row of waiting) {
    const certificate = await findCertificateById(db.reader, row.certificate_id);
    if (certificate === undefined) continue;
    const issuer = await otherIssuer(db.reader, certificate, row, now);
    if (issuer !== undefined) moved.push({ id: row.id, issuer });
  }
  if (moved.length === 0) return 0;
  return db.write(async (writer) => {
    let count = 0;
    for (const { id, issuer } of moved) {
      const row = await findRenewal(writer, id);
      if (row?.status !== 'queued' || row.issuer_id === issuer) continue;
      const changes = { issuer_id: issuer, held_until: null, hold_reason: null, order_url: null };
      await updateRenewal(writer, id, changes);
      count += 1;
    }
    return count;
  });
}

/** The issuer to move a waiting renewal to; undefined if it stays. */
async function otherIssuer(
  reader: Reader,
  certificate: CertificateRow,
  { issuer_id: asked }: RenewalRow,
  now: number,
): Promise<number | undefined> {
  const { issuer_id: issuer, fallback_issuer_id: fallback, current_version: number } = certificate;
  if (issuer === null || fallback === null) return undefined;
  const current = number === null ? undefined : await findVersion(reader, certificate.id, number);
  const facts = renewalFacts(certificate, current, now);
  if (facts.current !== null && !isNearExpiry(facts)) return undefined;
  const other = asked === issuer ? fallback : issuer;
  const retryAfter = other === issuer ? certificate.retry_after : certificate.fallback_retry_after;
  return Math.max(retryAfter ?? 0, await pausedUntil(reader, other)) > now ? undefined : other;
}

/** The certificate's issuer, or its fallback if the policy says so. A pause of an issuer counts as Retry-After. */
async function chooseIssuer(
  reader: Reader,
  certificate: CertificateRow,
  now: number,
): Promise<number | null> {
  const { issuer_id: issuer, fallback_issuer_id: fallback, current_version: number } = certificate;
  if (issuer === null || fallback === null) return issuer;
  const current = number === null ? undefined : await findVersion(reader, certificate.id, number);
  const facts = renewalFacts(certificate, current, now);
  const turn = turnOf({
    ...facts,
    retryAfter: Math.max(facts.retryAfter ?? 0, await pausedUntil(reader, issuer)),
    fallback: { retryAfter: Math.max(facts.fallback?.retryAfter ?? 0, await pausedUntil(reader, fallback)) },
  });
  return turn === 'primary' ? issuer : fallback;
}

async function pausedUntil(reader: Reader, issuerId: number): Promise<number> {
  return (await findAcmeIssuer(reader, issuerId))?.paused_until ?? 0;
}

/**
 * The lane of a certificate: the DNS provider with the zone of one of its names, or 0. CNAME aliases are not resolved
 * here, because the lane only limits concurrency.
 */
async function dnsLane(
  reader: Reader,
  { challenge }: CertificateRow,
  names: readonly Identifier[],
): Promise<number> {
  if (challenge !== null && challenge !== 'dns-01') return 0;
  const rows = await listDnsProviders(reader);
  if (rows.length === 0) return 0;
  const providers = rows.map(({ id, zones }) => ({ id, zones: parseJson(zones) }));
  for (const name of names) {
    const found = longestZone(challengeName(name.replace(/^\*\./, '')), providers);
    if (found !== undefined) return found.provider.id;
  }
  return 0;
}
