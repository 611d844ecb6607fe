/** Requests and look-ups of renewals: queued on request or because they are due, at most one open per certificate. */
import { Problem } from '../../base/problem.ts';
import { listDueCertificates, nextMoment } from '../../db/tables/certificates.ts';
import {
  findNamedRenewal,
  findOpenRenewal,
  findRenewal,
  listRenewals,
  type NamedRenewalRow,
  type RenewalPage,
  type RenewalRow,
} from '../../db/tables/renewals.ts';
import { type Actor, system } from '../audit/audit.ts';
import type { DatabaseContext } from '../contexts.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { type QueueContext, queueRenewal } from './renewal-queue.ts';

/** A renewal and the certificate it is for. */
export type Renewal = RenewalRow & { readonly certificate: string };

/** A renewal with the names of its certificate and of the issuer that it asks. */
export type NamedRenewal = NamedRenewalRow;

/** Which renewals; what is undefined does not matter. */
export type RenewalSearch = Omit<RenewalPage, 'certificateId'> & {
  /** The name of a certificate. */
  readonly certificate?: string | undefined;
  /** Whether the caller may know the names of all certificates; see `requireCertificate`. */
  readonly suggest?: boolean;
};

/** The renewals that fit, newest first. Throws `certificate_not_found`. */
export async function findRenewals(
  { db }: DatabaseContext,
  { certificate, suggest = false, ...page }: RenewalSearch,
): Promise<NamedRenewal[]> {
  const certificateId =
    certificate === undefined
      ? undefined
      : (await requireCertificate(db.reader, certificate, { suggest })).id;
  return listRenewals(db.reader, { ...page, certificateId });
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

/** The first moment after `now` (both UTC milliseconds) at which a renewal is due. */
export function nextDueAt({ db }: DatabaseContext, now: number): Promise<number | undefined> {
  return nextMoment(db.reader, now);
}

/**
 * Queues a renewal, or returns the one that is already queued or running. Throws `certificate_not_found` and
 * `not_renewable`.
 */
export async function requestRenewal(vault: QueueContext, actor: Actor, name: string): Promise<Renewal> {
  const renewal = await vault.db.write(async (writer) => {
    const certificate = await requireCertificate(writer, name);
    if (certificate.issuer_id === null) throw new Problem('not_renewable');
    if (certificate.disabled_at !== null) {
      throw new Problem('not_renewable', {
        detail: 'The certificate is disabled.',
        hint: `Fix: vault certificate update --name ${name} --enable`,
      });
    }
    return queueRenewal(vault, writer, actor, certificate);
  });
  vault.renewalQueued.notify();
  return { ...renewal, certificate: name };
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

/** Queues a renewal for each certificate that is due, at most `limit`. Returns how many. */
export async function queueDueRenewals(vault: QueueContext, limit: number): Promise<number> {
  const now = vault.world.now();
  if ((await listDueCertificates(vault.db.reader, now, 1)).length === 0) return 0;
  const queued = await vault.db.write(async (writer) => {
    const due = await listDueCertificates(writer, now, limit);
    for (const certificate of due) await queueRenewal(vault, writer, system, certificate);
    return due.length;
  });
  vault.renewalQueued.notify();
  return queued;
}
