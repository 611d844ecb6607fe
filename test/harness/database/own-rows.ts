/** Tags rows that a test wrote with SQL, as if a process of the vault had written them. */
import { openVault } from '../../../src/cli/runtime/open-vault.ts';
import { tagAllRows } from '../../../src/db/audit/first-tags.ts';
import { localCli, record } from '../../../src/domain/audit/audit.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { settingsFor } from '../test-vault.ts';
import { TestWorld } from '../test-world.ts';

/** Tags all rows of an open vault. */
export async function ownRows({ db, world }: Pick<Vault, 'db' | 'world'>): Promise<void> {
  await db.write(async (writer) => {
    await tagAllRows(writer);
    record(writer, { actor: localCli, action: 'integrity.row', resource: 'vault' }, world.now());
  });
}

/** The same for the vault of a data directory. */
export async function ownRowsIn(dataDir: string): Promise<void> {
  const { vault, close } = await openVault(settingsFor(dataDir), new TestWorld(), 'refuse');
  try {
    await ownRows(vault);
  } finally {
    await close();
  }
}
