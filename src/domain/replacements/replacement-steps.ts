/**
 * The steps of a replacement. Each one reads what is stored, does one thing and stores the outcome, so that after a
 * crash the next process repeats at most that one: a renewal that is open is found again, and a version that is revoked
 * already is not revoked twice.
 */
import { X509Certificate } from 'node:crypto';
import { hour, minute, second } from '../../base/duration.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import { type CertificateRow, findCertificateById } from '../../db/tables/certificates/certificates.ts';
import { findRenewal } from '../../db/tables/renewals/renewals.ts';
import {
  countReplacementStates,
  findOpenReplacementCertificate,
  isReplacementOpen,
  type ReplacementCertificateRow,
  type ReplacementStepRow,
  updateReplacement,
  updateReplacementCertificate,
} from '../../db/tables/replacements.ts';
import { record, system } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';
import { type QueueContext, queueRenewal } from '../renewals/renewal-queue.ts';
import { placesOf } from './replacement-places.ts';
import { obstacleTo } from './replacement-selection.ts';
import { resourceOf } from './replacements.ts';

/** How often an open renewal is checked, and the places where a certificate is installed. */
const lookEvery = 5 * second;

/** Places where nothing has changed are checked less and less often: after a twentieth of that time, up to this. */
const slowestLook = 5 * minute;

/** After so many failures in a row; the last one repeats. */
const retryAfter = [minute, 10 * minute, hour] as const;

type Changes = Partial<ReplacementCertificateRow>;

/**
 * The next step of a certificate up to the revocation. Returns whether the old version can be revoked now, which is not
 * a part of this step.
 */
export async function advance(vault: QueueContext, row: ReplacementStepRow): Promise<boolean> {
  const isNewer = row.new_version !== null && row.new_version > row.old_version;
  if (isNewer && row.state === 'live') return true;
  if (isNewer && row.state === 'issued') return isTimeToRevoke(vault, row);
  let isQueued = false;
  await vault.db.write(async (writer) => {
    const current = await findOpenReplacementCertificate(writer, row.id);
    if (current === undefined) return;
    const certificate = current.certificate_id && (await findCertificateById(writer, current.certificate_id));
    if (!certificate) return finish(vault, writer, current, { error: 'the certificate was deleted' });
    const now = vault.world.now();
    if (await isReplaced(writer, certificate, current)) {
      await change(writer, current, now, {
        ...{ state: 'issued', new_version: certificate.current_version },
        ...{ attempts: 0, error: null, next_at: now },
      });
      return;
    }
    if (current.state === 'renewing' && (await followRenewal(writer, certificate, current, now))) return;
    const obstacle = await obstacleTo(writer, certificate, current.reason);
    if (obstacle !== undefined) return finish(vault, writer, current, { error: obstacle });
    const renewal = await queueRenewal(vault, writer, { name: current.created_by }, certificate);
    isQueued = true;
    await change(writer, current, now, {
      ...{ state: 'renewing', renewal_id: renewal.id, next_at: now + lookEvery },
    });
  });
  if (isQueued) vault.renewalQueued.notify();
  return false;
}

/**
 * Reads again, right before a revocation, what it depends on: the row was read before others waited for their CAs.
 * Returns the certificate; undefined if the row is finished by now, or if there is no newer version, and the row waits
 * for one.
 */
export async function confirmReplaced(
  vault: TimedContext,
  { id }: ReplacementStepRow,
): Promise<CertificateRow | undefined> {
  const { reader } = vault.db;
  const row = await findOpenReplacementCertificate(reader, id);
  if (row === undefined) return undefined;
  const { certificate_id } = row;
  const certificate = certificate_id === null ? undefined : await findCertificateById(reader, certificate_id);
  if (certificate === undefined) {
    await vault.db.write((writer) => finish(vault, writer, row, { error: 'the certificate was deleted' }));
    return undefined;
  }
  if (await isReplaced(reader, certificate, row)) return certificate;
  const now = vault.world.now();
  const waiting = { state: 'waiting', new_version: null, renewal_id: null, next_at: now } as const;
  await vault.db.write((writer) => change(writer, row, now, waiting));
  return undefined;
}

/** Whether there is a newer version, with another key if the old one is compromised. */
async function isReplaced(
  reader: Reader,
  { id, current_version: version }: CertificateRow,
  { old_version, reason }: ReplacementStepRow,
): Promise<boolean> {
  if (version === null || version <= old_version) return false;
  if (reason !== 'key-compromised') return true;
  const [old, current] = await Promise.all([
    findVersion(reader, id, old_version),
    findVersion(reader, id, version),
  ]);
  return old === undefined || current === undefined || !haveSameKey(old, current);
}

/** Whether two certificates (PEM) have the same public key. */
export function haveSameKey(
  one: { readonly certificate_pem: string },
  other: { readonly certificate_pem: string },
): boolean {
  const keyOf = (pem: string) => new X509Certificate(pem).publicKey;
  return keyOf(one.certificate_pem).equals(keyOf(other.certificate_pem));
}

/** Whether the renewal is open, or has failed and is not to be repeated yet. */
async function followRenewal(
  writer: Writer,
  certificate: CertificateRow,
  row: ReplacementStepRow,
  now: number,
): Promise<boolean> {
  const renewal = row.renewal_id === null ? undefined : await findRenewal(writer, row.renewal_id);
  if (renewal?.status === 'queued' || renewal?.status === 'running') {
    await updateReplacementCertificate(writer, row.id, { next_at: now + lookEvery });
    return true;
  }
  if (renewal?.status !== 'failed') return false;
  const { attempts, next_at } = afterFailure(row, now);
  await change(writer, row, now, {
    ...{ state: 'failed', error: renewal.error, attempts },
    next_at: Math.max(next_at, certificate.retry_after ?? 0),
  });
  return true;
}

/** When to try again after one more failure. */
export function afterFailure(
  { attempts }: Pick<ReplacementStepRow, 'attempts'>,
  now: number,
): { readonly attempts: number; readonly next_at: number } {
  return { attempts: attempts + 1, next_at: now + (retryAfter[attempts] ?? hour) };
}

/**
 * Counts where the new version is. Without any place that is known, only the deadline decides: the vault cannot tell
 * what still uses the old version.
 */
async function isTimeToRevoke(vault: TimedContext, row: ReplacementStepRow): Promise<boolean> {
  const { certificate_id: id, new_version, deadline_at } = row;
  const now = vault.world.now();
  const { live, places } =
    id === null || new_version === null ? { live: 0, places: 0 } : await placesOf(vault, id, new_version);
  const isLive = places > 0 && live === places;
  const isDue = isLive || now >= deadline_at;
  const isSame = live === row.live && places === row.places;
  const wait = isSame ? Math.round((now - row.changed_at) / 20) : 0;
  const look = now + Math.min(Math.max(lookEvery, wait), slowestLook);
  const next_at = isDue ? now : Math.min(look, deadline_at);
  await vault.db.write(async (writer) => {
    if (isLive) await change(writer, row, now, { live, places, next_at, state: 'live' });
    else if (isSame) await updateReplacementCertificate(writer, row.id, { next_at });
    else await change(writer, row, now, { live, places, next_at });
  });
  return isDue;
}

function change(writer: Writer, { id }: ReplacementStepRow, now: number, changes: Changes): Promise<boolean> {
  return updateReplacementCertificate(writer, id, { ...changes, changed_at: now });
}

/** Ends what is done about a certificate, `failed` with an error, and the replacement with its last certificate. */
export async function finish(
  { world }: TimedContext,
  writer: Writer,
  row: ReplacementStepRow,
  { error }: { readonly error: string | null },
): Promise<void> {
  const now = world.now();
  const state = error === null ? 'revoked' : 'failed';
  if (!(await change(writer, row, now, { state, error, finished_at: now }))) return;
  if (await isReplacementOpen(writer, row.replacement_id)) return;
  const counts = await countReplacementStates(writer, row.replacement_id);
  await updateReplacement(writer, row.replacement_id, { finished_at: now });
  const detail = Object.fromEntries(counts.map(({ state: its, count }) => [its, count]));
  const resource = resourceOf(row.replacement_id);
  record(writer, { actor: system, action: 'replacement.finish', resource, detail }, now);
}
