/** Opens the vault for commands that write or remove key files. */
import { OperatorError } from '../../../base/operator-error.ts';
import type { Vault } from '../../../domain/vault.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { readSettings, type Settings } from '../../settings/settings.ts';
import type { Terminal } from '../../terminal/terminal.ts';

/** The command stays the source of the key, so the operator has to store the new key there. */
const keyFilesFromCommand =
  'Stop the vault, write the key to a file in memory (umask 077; COMMAND >/dev/shm/KEY), run this command with\n' +
  '  --master-key-file /dev/shm/KEY, store the new key where COMMAND reads it, remove the files, and start the vault.';

/** As `withVault`, for commands that write or remove files beside the key file. */
export async function withKeyFiles(
  args: Parameters<typeof readSettings>[0],
  terminal: Terminal,
  work: (vault: Vault, settings: Settings) => Promise<void>,
): Promise<void> {
  const { masterKeyCommand } = await readSettings(args, terminal.environment);
  if (masterKeyCommand !== undefined) {
    throw new OperatorError(
      `this command needs a key file, but the master key comes from ${masterKeyCommand[0]}`,
      {
        hint: keyFilesFromCommand,
      },
    );
  }
  return withVault(args, terminal, 'refuse', async (vault, settings) => {
    if (settings.masterKeyFile === '-') {
      throw new OperatorError('this command needs a key file, but the master key comes from standard input', {
        hint: 'Name the key file with --master-key-file. Nothing was changed.',
      });
    }
    await work(vault, settings);
  });
}
