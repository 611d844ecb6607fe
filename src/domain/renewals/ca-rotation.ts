/** Rotates a private CA and moves its certificates to the new root. */
import type { Reader } from '../../db/database.ts';
import { pageCertificatesOfIssuer } from '../../db/tables/certificates/certificates.ts';
import type { Actor } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import { type CaRotation, type PrivateCa, rotateRoot } from '../private-ca/rotation.ts';
import type { QueueContext } from './renewal-queue.ts';
import { requestRenewals, type SpreadRenewals } from './renewal-spread.ts';

const certificatesAtOnce = 500;

/**
 * Replaces the root of a private CA like `rotateRoot`, and renews the certificates that renew automatically, spread
 * over a day. If the process ends in between, those that are not queued are renewed on their schedules.
 */
export async function rotateCa(
  vault: SecretsContext & QueueContext,
  actor: Actor,
  ca: PrivateCa,
): Promise<CaRotation & SpreadRenewals> {
  const rotation = await rotateRoot(vault, actor, ca);
  return { ...rotation, ...(await renewAllOf(vault, actor, ca)) };
}

/** Renews the certificates of a private CA that renew automatically, spread over a day. */
export async function renewAllOf(
  vault: SecretsContext & QueueContext,
  actor: Actor,
  { id }: PrivateCa,
): Promise<SpreadRenewals> {
  return requestRenewals(vault, actor, await renewedNames(vault.db.reader, id), { alsoPrivate: true });
}

async function renewedNames(reader: Reader, issuerId: number): Promise<string[]> {
  const names: string[] = [];
  for (let after = 0; ; ) {
    const rows = await pageCertificatesOfIssuer(reader, issuerId, after, certificatesAtOnce);
    for (const row of rows) if (row.issuer_id === issuerId && row.auto_renew === 1) names.push(row.name);
    after = rows.at(-1)?.id ?? after;
    if (rows.length < certificatesAtOnce) return names;
  }
}
