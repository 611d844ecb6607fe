/** Destroys deleted certificates with their private keys: on request, and when they have been kept long enough. */
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Writer } from '../../db/database.ts';
import { deleteOldestVersions } from '../../db/tables/certificates/certificate-versions.ts';
import {
  type DeletedCertificateRow,
  deleteDeletedCertificate,
  findDeletedCertificate,
  listDeletedBefore,
} from '../../db/tables/certificates/deleted-certificates.ts';
import { deleteNextKey } from '../../db/tables/certificates/next-keys.ts';
import { type Actor, record, system } from '../audit/audit.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { countPrunedVersions } from '../versions/version-pruning.ts';
import { type DeletedChoice, requireDeleted } from './deleted-certificates.ts';

/** Throws `certificate_not_found` unless there is a deleted certificate with this name. */
export async function refuseUnknownDeleted({ db }: DatabaseContext, name: string): Promise<void> {
  await requireDeleted(db.reader, { name });
}

/** Versions destroyed in one transaction: a few milliseconds. */
const versionsPerStep = 50;

/** Destroys a deleted certificate and its private keys. Throws `certificate_not_found`. */
export async function purgeCertificate(
  vault: TimedContext,
  actor: Actor,
  which: DeletedChoice,
): Promise<void> {
  const row = await requireDeleted(vault.db.reader, which);
  // Restored or purged by another process meanwhile.
  if (!(await purgeRow(vault, actor, row))) await requireDeleted(vault.db.reader, { id: row.id });
}

/** Destroys what was deleted more than `keepFor` milliseconds ago. Returns how many certificates. */
export async function purgeExpired(
  vault: TimedContext,
  keepFor: number,
  signal?: AbortSignal,
): Promise<number> {
  const { db, world } = vault;
  let purged = 0;
  while (signal?.aborted !== true) {
    const [row] = await listDeletedBefore(db.reader, world.now() - keepFor, 1);
    if (row === undefined) break;
    if (await purgeRow(vault, system, row, signal)) purged += 1;
    await world.turn();
  }
  return purged;
}

/**
 * In short transactions, the oldest versions first, so that one that is interrupted can be run again, and what is left
 * can be restored. Returns false if the certificate is gone from the deleted ones, or `signal` was aborted.
 */
async function purgeRow(
  { db, world }: TimedContext,
  actor: Actor,
  row: DeletedCertificateRow,
  signal?: AbortSignal,
): Promise<boolean> {
  while (signal?.aborted !== true) {
    const step = await db.write((writer) => purgeStep(writer, actor, row, world.now()));
    if (step !== 'more') return step === 'done';
    await world.turn();
  }
  return false;
}

async function purgeStep(
  writer: Writer,
  actor: Actor,
  { id, name, deleted_at, certificate_id: certificateId }: DeletedCertificateRow,
  now: number,
): Promise<'more' | 'done' | 'gone'> {
  if ((await findDeletedCertificate(writer, id)) === undefined) return 'gone';
  if (certificateId !== null) {
    const versions = await deleteOldestVersions(writer, certificateId, versionsPerStep);
    await countPrunedVersions(writer, versions);
    if (versions === versionsPerStep) return 'more';
    await deleteNextKey(writer, certificateId);
  }
  await deleteDeletedCertificate(writer, id);
  const detail = { deleted_at: formatTimestamp(deleted_at) };
  record(writer, { actor, action: 'certificate.purge', resource: `certificate:${name}`, detail }, now);
  return 'done';
}
