/**
 * The first start of a vault from before there were tags: what stands in the database then is trusted, tagged in one
 * transaction, and an event says so. The check blob remembers that it happened, so that it cannot happen again.
 */
import type { Log } from '../../base/log.ts';
import { IntegrityKey } from '../../crypto/integrity-key.ts';
import { lastLinked } from '../../db/audit/audit-chain.ts';
import { lastAuditEvent } from '../../db/audit/audit-events.ts';
import { writeAuditMark } from '../../db/audit/audit-mark.ts';
import { tagAllRows } from '../../db/audit/row-tags.ts';
import { deleteSettings } from '../../db/tables/settings.ts';
import { record, system } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import {
  integritySecretIn,
  masterKeyFits,
  newIntegritySecret,
  writeCheckBlob,
} from '../master-key/master-key-check.ts';
import { currentKey } from '../sealed-secrets.ts';

/** Tags all rows of a database that was opened by its master key and has no integrity key yet; does nothing where it has one. */
export async function adoptRows(parts: SecretsContext, log?: Log): Promise<void> {
  const { db, world } = parts;
  if (db.integrity !== undefined) return;
  await db.write(async (untagged) => {
    // Of two processes that start at once, one has done it.
    if ((await integritySecretIn(parts, untagged)) !== undefined) return;
    const secret = newIntegritySecret(world);
    const integrity = new IntegrityKey(secret);
    const writer = Object.assign(untagged, { integrity });
    const now = world.now();
    const last = await lastAuditEvent(writer);
    const { link } = await lastLinked(writer);
    await writeAuditMark(writer, integrity, { id: last?.id ?? 0, link });
    const counts = await tagAllRows(writer);
    // It has no tag either, and the next start shows another link.
    await deleteSettings(writer, ['setup-token-hash', 'setup-token-expires-at']);
    await writeCheckBlob({ world }, writer, await currentKey(parts, writer), secret);
    const detail = { audit_events_through: last?.id ?? 0, hash: link.toString('hex'), ...counts };
    record(writer, { actor: system, action: 'integrity.begin', resource: 'vault', detail }, now);
    log?.warn(counts, 'tagged rows written by an earlier version; rotate the master key');
  });
  await masterKeyFits(parts);
}
