/** The queue of renewals: at most one is open per certificate, and which issuer it asks is decided when it is queued. */
import { findVersion } from '../db/certificate-versions.ts';
import type { CertificateRow } from '../db/certificates.ts';
import type { Writer } from '../db/database.ts';
import { findAcmeIssuer } from '../db/issuers.ts';
import { findOpenRenewal, findRenewal, insertRenewal, type RenewalRow } from '../db/renewals.ts';
import { type Actor, record } from './audit.ts';
import { renewalFacts } from './renewal-plan.ts';
import { asksFallback, isNearEnd } from './renewal-policy.ts';
import type { Vault } from './vault.ts';

/** Puts a renewal into the queue in the caller's transaction, or returns the one that is open. */
export async function queueRenewal(
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
    issuer_id: await issuerToAsk(writer, certificate, now),
  });
  const resource = `certificate:${certificate.name}`;
  await record(writer, { actor, action: 'renewal.request', resource, detail: { renewal: id } }, now);
  const row = await findRenewal(writer, id);
  if (row === undefined) throw new Error(`renewal ${id} vanished in its own transaction`);
  return row;
}

/** The certificate's issuer, or its fallback where the policy says so, or near the end while the issuer is paused. */
async function issuerToAsk(writer: Writer, certificate: CertificateRow, now: number): Promise<number | null> {
  const { issuer_id: issuer, fallback_issuer_id: fallback, current_version: number } = certificate;
  if (issuer === null || fallback === null) return issuer;
  const current = number === null ? undefined : await findVersion(writer, certificate.id, number);
  const facts = renewalFacts(certificate, current, now);
  if (asksFallback(facts)) return fallback;
  const isPaused = ((await findAcmeIssuer(writer, issuer))?.paused_until ?? 0) > now;
  return isPaused && isNearEnd(facts) ? fallback : issuer;
}
