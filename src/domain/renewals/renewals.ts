/** Requests and finds renewals: queued on request or when due, at most one open per certificate. */
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import {
  type CertificateRow,
  listDueCertificates,
  nextMoment,
} from '../../db/tables/certificates/certificates.ts';
import {
  findNamedRenewal,
  findOpenRenewal,
  findRenewal,
  lastRenewalId,
  listNamedRenewals,
  listRenewals,
  type NamedRenewalRow,
  type QueuedRenewal,
  type RenewalPage,
  type RenewalRow,
} from '../../db/tables/renewals/renewals.ts';
import { anyProfile, type ProfileCheck, profileOf } from '../access/profile-confinement.ts';
import { type Actor, system } from '../audit/audit.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { inMatchedPortions, inPortions } from '../portions.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { refuseOwned } from '../versions/certificate-owners.ts';
import { type QueueContext, queuedRenewals, queueRenewal } from './renewal-queue.ts';

/** A renewal and the certificate it is for. */
export type Renewal = RenewalRow & { readonly certificate: string };

/** A renewal with the names of its certificate and issuer. */
export type NamedRenewal = NamedRenewalRow;

/** Filters for renewals; undefined ones match all. */
export type RenewalSearch = Omit<RenewalPage, 'certificateId'> & {
  /** The name of a certificate. */
  readonly certificate?: string | undefined;
  /** Whether the caller may know the names of all certificates; see `requireCertificate`. */
  readonly suggest?: boolean;
};

/** Renewals per portion: each has up to a hundred steps. */
const rowsPerPortion = 100;

/** Renewals scanned per query: a few milliseconds of work. */
const scannedAtOnce = 10_000;

/** The matching renewals, newest first, in portions. Throws `certificate_not_found`. */
export async function* findRenewals(
  vault: TimedContext,
  { certificate, suggest = false, ...page }: RenewalSearch,
): AsyncGenerator<readonly NamedRenewal[]> {
  const { reader } = vault.db;
  const { status, before = Number.MAX_SAFE_INTEGER, limit } = page;
  const certificateId =
    certificate === undefined ? undefined : (await requireCertificate(reader, certificate, { suggest })).id;
  if (certificateId === undefined && status === 'queued' && page.reach === undefined) {
    yield* inMatchedPortions<QueuedRenewal, NamedRenewal>(
      vault,
      limit,
      (count, last) => newestQueued(vault, last?.id ?? before, count),
      (matches) =>
        listNamedRenewals(
          reader,
          matches.map(({ id }) => id),
        ),
      rowsPerPortion,
    );
  } else if (certificateId === undefined && (status === 'succeeded' || page.reach !== undefined)) {
    yield* spansOfRenewals(vault, { ...page, before });
  } else {
    yield* inPortions<NamedRenewal>(
      vault,
      limit,
      (count, last) =>
        listRenewals(reader, { ...page, certificateId, before: last?.id ?? before, limit: count }),
      rowsPerPortion,
    );
  }
}

/** The newest queued renewals that are older than the one with the id `before`. */
async function newestQueued(
  vault: TimedContext,
  before: number,
  limit: number,
): Promise<readonly QueuedRenewal[]> {
  let newest: QueuedRenewal[] = [];
  for await (const queued of queuedRenewals(vault)) {
    newest = [...newest, ...queued.filter(({ id }) => id < before)]
      .toSorted((one, other) => other.id - one.id)
      .slice(0, limit);
  }
  return newest;
}

/** The matching renewals, one range of ids at a time: if few match, the whole history is read. */
async function* spansOfRenewals(
  { db, world }: TimedContext,
  { before, limit, ...filter }: RenewalPage & { readonly before: number },
): AsyncGenerator<readonly NamedRenewal[]> {
  let left = limit;
  let end = Math.min(before, (await lastRenewalId(db.reader)) + 1);
  while (end > 1 && left > 0) {
    const from = Math.max(1, end - scannedAtOnce);
    const count = Math.min(left, rowsPerPortion);
    const rows = await listRenewals(db.reader, { ...filter, before: end, from, limit: count });
    yield rows;
    left -= rows.length;
    end = rows.length < count ? from : (rows.at(-1)?.id ?? from);
    await world.turn();
  }
}

/** The renewal with this id. */
export function renewalWithId({ db }: DatabaseContext, id: number): Promise<NamedRenewal | undefined> {
  return findNamedRenewal(db.reader, id);
}

/** The renewal of the certificate with this id that is queued or running. */
export function openRenewalOf(
  { db }: DatabaseContext,
  certificateId: number,
): Promise<RenewalRow | undefined> {
  return findOpenRenewal(db.reader, certificateId);
}

/** The first time after `now` (both UTC milliseconds) at which a renewal is due. */
export function nextDueAt({ db }: DatabaseContext, now: number): Promise<number | undefined> {
  return nextMoment(db.reader, now);
}

/**
 * Queues a renewal, or returns the one that is already queued or running. `count` is called with the id of the
 * certificate before one is queued. Throws `certificate_not_found`, `not_renewable`, and what `count` throws.
 */
export async function requestRenewal(
  vault: QueueContext,
  actor: Actor,
  name: string,
  {
    check = anyProfile,
    count = () => undefined,
  }: {
    readonly check?: ProfileCheck;
    readonly count?: (certificateId: number) => void;
  } = {},
): Promise<Renewal> {
  const renewal = await vault.db.write(async (writer) => {
    const certificate = await requireCertificate(writer, name);
    if (check !== anyProfile) check(await profileOf(writer, certificate));
    await refuseNotRenewable(writer, certificate);
    if ((await findOpenRenewal(writer, certificate.id)) === undefined) count(certificate.id);
    return queueRenewal(vault, writer, actor, certificate);
  });
  vault.renewalQueued.notify();
  return { ...renewal, certificate: name };
}

/** Throws `not_renewable` for a certificate that an ACME client renews, or that has no issuer or is disabled. */
export async function refuseNotRenewable(
  reader: Reader,
  certificate: Pick<CertificateRow, 'name' | 'issuer_id' | 'disabled_at' | 'acme_client_id'>,
): Promise<void> {
  await refuseOwned(reader, certificate);
  const { name, issuer_id, disabled_at } = certificate;
  if (issuer_id === null) throw new Problem('not_renewable');
  if (disabled_at === null) return;
  throw new Problem('not_renewable', {
    detail: 'The certificate is disabled.',
    hint: `Fix: vault certificate update --name ${name} --enable`,
  });
}

/** The renewal of this certificate with this id. Throws `certificate_not_found` and `not_found`. */
export async function requireRenewal({ db }: DatabaseContext, name: string, id: number): Promise<Renewal> {
  const certificate = await requireCertificate(db.reader, name);
  const renewal = await findRenewal(db.reader, id);
  if (renewal?.certificate_id !== certificate.id) {
    throw new Problem('not_found', { detail: `Certificate ${JSON.stringify(name)} has no renewal ${id}.` });
  }
  return { ...renewal, certificate: name };
}

/** Queues a renewal for each certificate that is due by `dueUntil`, at most `limit`. Returns how many. */
export async function queueDueRenewals(
  vault: QueueContext,
  limit: number,
  dueUntil = vault.world.now(),
): Promise<number> {
  if ((await listDueCertificates(vault.db.reader, dueUntil, 1)).length === 0) return 0;
  const queued = await vault.db.write(async (writer) => {
    const due = await listDueCertificates(writer, dueUntil, limit);
    for (const certificate of due) await queueRenewal(vault, writer, system, certificate);
    return due.length;
  });
  vault.renewalQueued.notify();
  return queued;
}
