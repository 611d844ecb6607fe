/** Destroys deleted certificates with their private keys: on request, and when they have been kept long enough. */
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Writer } from '../../db/database.ts';
import {
  type DeletedCertificateRow,
  deleteDeletedCertificate,
  findDeletedCertificate,
  listDeletedBefore,
} from '../../db/tables/deleted-certificates.ts';
import { type Actor, record, system } from '../audit/audit.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';
import { type DeletedChoice, requireDeleted } from './deleted-certificates.ts';

/** Throws `certificate_not_found` unless there is a deleted certificate with this name. */
export async function refuseUnknownDeleted({ db }: DatabaseContext, name: string): Promise<void> {
  await requireDeleted(db.reader, { name });
}

/** Destroys a deleted certificate and its private keys. Throws `certificate_not_found`. */
export async function purgeCertificate(
  { db, world }: TimedContext,
  actor: Actor,
  which: DeletedChoice,
): Promise<void> {
  await db.write(async (writer) => purgeRow(writer, actor, await requireDeleted(writer, which), world.now()));
}

/** Destroys what was deleted more than `keepFor` milliseconds ago. Returns how many certificates. */
export async function purgeExpired(
  { db, world }: TimedContext,
  keepFor: number,
  signal?: AbortSignal,
): Promise<number> {
  let purged = 0;
  while (signal?.aborted !== true) {
    const now = world.now();
    const [row] = await listDeletedBefore(db.reader, now - keepFor, 1);
    if (row === undefined) break;
    await db.write(async (writer) => {
      // Restored or purged by another process meanwhile.
      if ((await findDeletedCertificate(writer, row.id)) === undefined) return;
      await purgeRow(writer, system, row, now);
      purged += 1;
    });
    await world.turn();
  }
  return purged;
}

async function purgeRow(
  writer: Writer,
  actor: Actor,
  row: DeletedCertificateRow,
  now: number,
): Promise<void> {
  await deleteDeletedCertificate(writer, row.id);
  const detail = { deleted_at: formatTimestamp(row.deleted_at) };
  record(writer, { actor, action: 'certificate.purge', resource: `certificate:${row.name}`, detail }, now);
}
