/** Renewals as people ask for them and see them: queued by request or because they are due, one open per certificate. */
import { Problem } from '../base/problem.ts';
import { type CertificateRow, listDueCertificates } from '../db/certificates.ts';
import type { Writer } from '../db/database.ts';
import { findOpenRenewal, findRenewal, insertRenewal, type RenewalRow } from '../db/renewals.ts';
import { type Actor, record, system } from './audit.ts';
import { requireCertificate } from './certificates.ts';
import type { Vault } from './vault.ts';

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
    return queue(vault, writer, actor, certificate);
  });
  vault.renewalQueued.ring();
  return { ...renewal, certificate: name };
}

/** The renewal of this certificate with this id. Throws `certificate_not_found` and `not_found`. */
export async function requireRenewal({ db }: Vault, name: string, id: number): Promise<Renewal> {
  const certificate = await requireCertificate(db.reader, name);
  const renewal = await findRenewal(db.reader, id);
  if (renewal?.certificate_id !== certificate.id) {
    throw new Problem('not_found', { detail: `The certificate has no renewal ${id}.` });
  }
  return { ...renewal, certificate: name };
}

/** Queues a renewal for certificates whose moment has come, at most `limit` at a time. Returns how many. */
export async function queueDueRenewals(vault: Vault, limit: number): Promise<number> {
  const now = vault.world.now();
  if ((await listDueCertificates(vault.db.reader, now, 1)).length === 0) return 0;
  const queued = await vault.db.write(async (writer) => {
    const due = await listDueCertificates(writer, now, limit);
    for (const certificate of due) await queue(vault, writer, system, certificate);
    return due.length;
  });
  vault.renewalQueued.ring();
  return queued;
}

async function queue(
  { world }: Vault,
  writer: Writer,
  actor: Actor,
  certificate: CertificateRow,
): Promise<RenewalRow> {
  const open = await findOpenRenewal(writer, certificate.id);
  if (open !== undefined) return open;
  const now = world.now();
  const id = await insertRenewal(writer, {
    certificate_id: certificate.id,
    requested_by: actor.name,
    requested_at: now,
  });
  const resource = `certificate:${certificate.name}`;
  await record(writer, { actor, action: 'renewal.request', resource, detail: { renewal: id } }, now);
  const row = await findRenewal(writer, id);
  if (row === undefined) throw new Error(`renewal ${id} vanished in its own transaction`);
  return row;
}
