/**
 * A vault as the version before `vault-audit-3` left it: no event records a row, and kept outbound addresses have no
 * tag.
 */
import { requireIntegrity } from '../../../src/base/integrity.ts';
import { asciiNetstring, netstring } from '../../../src/base/netstring.ts';
import { hashIn } from '../../../src/db/audit/audit-chain.ts';
import { deleteSettings } from '../../../src/db/tables/settings.ts';
import type { Vault } from '../../../src/domain/vault.ts';

/** Takes the records out of the log, and gives its events the tags of that version. */
export async function makeOlder({ db }: Pick<Vault, 'db'>): Promise<void> {
  const integrity = requireIntegrity(db);
  await db.write(async (writer) => {
    for (const { id, link } of await writer.selectFrom('audit_events').select(['id', 'link']).execute()) {
      const hash = hashIn(link);
      const text = netstring('vault-audit-2') + asciiNetstring(hash.toString('hex'));
      const older = Buffer.concat([hash, integrity.tag('audit event', text)]);
      await writer.updateTable('audit_events').set({ link: older }).where('id', '=', id).execute();
    }
    await deleteSettings(writer, ['kept-outbound-tag']);
  });
}
