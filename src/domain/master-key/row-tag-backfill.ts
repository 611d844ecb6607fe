/**
 * The first start after an upgrade. If the old version had no tags, its rows are trusted and tagged in one transaction,
 * and an event records that; the check blob then prevents a repetition. If its log did not record rows, those with a
 * valid tag are recorded: the newest event shows that no later version has run.
 */

import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import type { Log } from '../../base/log.ts';
import { IntegrityKey } from '../../crypto/secrets/integrity-key.ts';
import { hashIn, isFromBeforeRecords, lastLinked } from '../../db/audit/audit-chain.ts';
import { lastAuditEvent } from '../../db/audit/audit-events.ts';
import { readMark, writeAuditMark } from '../../db/audit/audit-mark.ts';
import { tagAllRows } from '../../db/audit/first-tags.ts';
import { listTaggedRows } from '../../db/audit/row-list.ts';
import type { Reader } from '../../db/database.ts';
import { deleteSettings } from '../../db/tables/settings.ts';
import { record, system } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import { storeTargets, targetsToKeep } from '../instance/legacy-outbound-targets.ts';
import { currentKey } from '../sealed-secrets.ts';
import { integritySecretIn, masterKeyFits, newIntegritySecret, writeCheckBlob } from './master-key-check.ts';

/** Adopts the rows of an earlier version in a database opened with its master key; does nothing if already done. */
export async function adoptRows(parts: SecretsContext, log?: Log): Promise<void> {
  if (parts.db.integrity === undefined) await tagRows(parts, log);
  else if (await isFromBefore(parts.db.reader, parts.db.integrity)) await recordRows(parts, log);
}

async function tagRows(parts: SecretsContext, log: Log | undefined): Promise<void> {
  const { db, world } = parts;
  const targets = await targetsToKeep(parts);
  await db.write(async (untagged) => {
    // Another process that started concurrently has done it.
    if ((await integritySecretIn(parts, untagged)) !== undefined) return;
    const secret = newIntegritySecret(world);
    const integrity = new IntegrityKey(secret);
    const writer = Object.assign(untagged, { integrity });
    const now = world.now();
    const last = await lastAuditEvent(writer);
    const { link } = await lastLinked(writer);
    await writeAuditMark(writer, integrity, { id: last?.id ?? 0, link });
    const counts = await tagAllRows(writer);
    await storeTargets(writer, targets);
    // The setup link has no tag either; the next start shows another.
    await deleteSettings(writer, ['setup-token-hash', 'setup-token-expires-at']);
    await writeCheckBlob({ world }, writer, await currentKey(parts, writer), secret);
    const detail = { audit_events_through: last?.id ?? 0, hash: link.toString('hex'), ...counts };
    record(writer, { actor: system, action: 'integrity.begin', resource: 'vault', detail }, now);
    log?.warn(counts, 'tagged rows written by an earlier version; rotate the master key');
  });
  await masterKeyFits(parts);
}

/** Whether the log ends, as its mark confirms, with an event of a version that recorded no rows. */
async function isFromBefore(reader: Reader, integrity: Integrity): Promise<boolean> {
  const last = await lastAuditEvent(reader);
  if (last === undefined || !isFromBeforeRecords(integrity, last.link)) return false;
  const mark = await readMark(reader, integrity);
  return mark?.id === last.id && mark.link.equals(hashIn(last.link));
}

async function recordRows(parts: SecretsContext, log: Log | undefined): Promise<void> {
  const { db, world } = parts;
  const targets = await targetsToKeep(parts);
  await db.write(async (writer) => {
    const integrity = requireIntegrity(writer);
    if (!(await isFromBefore(writer, integrity))) return;
    const rows = await listTaggedRows(writer, integrity);
    const adopted = rows.flatMap(({ resource, tag, state }) =>
      state === 'unrecorded' && tag !== null ? [{ resource, tag }] : [],
    );
    for (const { resource, tag } of adopted) writer.rows.set(resource, tag);
    await storeTargets(writer, targets);
    const detail = { rows: adopted.length };
    record(writer, { actor: system, action: 'integrity.row', resource: 'vault', detail }, world.now());
    log?.info(detail, 'recorded the rows of an earlier version in the audit log');
  });
}
