/** Creates backups in the process of the test, in the same way as the command. */
import { Secret } from '../../../src/base/secret.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { type BackupOrder, backUpTo } from '../../../src/domain/backup/backup.ts';
import { checkBackup } from '../../../src/domain/backup/backup-file.ts';
import type { Vault } from '../../../src/domain/vault.ts';

export const backupPassphrase = 'several words in a row';

/** Writes a backup of the vault to `file`; `unverified` skips the verification of the written file. */
export async function makeBackup(
  vault: Vault,
  file: string,
  options: { readonly withKey?: true; readonly unverified?: true } = {},
): Promise<void> {
  const order: BackupOrder = {
    actor: localCli,
    version: '0.0.0-test',
    passphrase: options.withKey && new Secret(backupPassphrase),
    verify: async (draft, masterKey) => options.unverified ?? (await checkBackup(draft, masterKey)),
  };
  await backUpTo(vault, order, file, 'refuse');
}

/** The names of the vault's certificates. */
export async function certificateNames({ db }: Pick<Vault, 'db'>): Promise<string[]> {
  const rows = await db.reader.selectFrom('certificates').select('name').orderBy('name').execute();
  return rows.map(({ name }) => name);
}
