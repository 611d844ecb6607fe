/** Requests and look-ups of renewals: queued on request or because they are due, at most one open per certificate. */
import { Problem } from '../../base/problem.ts';
import { listDueCertificates } from '../../db/tables/certificates.ts';
import { findRenewal, type RenewalRow } from '../../db/tables/renewals.ts';
import { type Actor, system } from '../audit/audit.ts';
import type { Vault } from '../vault.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { queueRenewal } from './renewal-queue.ts';

/** A renewal and the certificate it is for. */
export type Renewal = RenewalRow & { readonly certificate: string };

/**
 * Queues a renewal, or returns the one that is already queued or running. Throws `certificate_not_found` and
 * `not_renewable`.
 */
export async function requestRenewal(vault: Vault, actor: Actor, name: string): Promise<Renewal> {
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
export async function requireRenewal({ db }: Vault, name: string, id: number): Promise<Renewal> {
  const certificate = await requireCertificate(db.reader, name);
  const renewal = await findRenewal(db.reader, id);
  if (renewal?.certificate_id !== certificate.id) {
    throw new Problem('not_found', { detail: `Certificate ${JSON.stringify(name)} has no renewal ${id}.` });
  }
  return { ...renewal, certificate: name };
}

/** Queues a renewal for each certificate that is due, at most `limit`. Returns how many. */
export async function queueDueRenewals(vault: Vault, limit: number): Promise<number> {
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
