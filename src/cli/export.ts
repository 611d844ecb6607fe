/** `vault export`: what the vault holds, as the file that "vault apply" takes. */
import { exportedDocument } from '../domain/state-export.ts';
import { readVaultState } from '../domain/vault-state.ts';
import { command } from './command.ts';
import { withVault } from './with-vault.ts';

const heading = `# yaml-language-server: $schema=vault.schema.json
# What the vault holds, for "vault apply -f FILE". Secrets are not in it: "keep" leaves what the vault has.
`;

export const exportCommand = command({
  name: 'export',
  description: 'print what the vault holds as a file for "vault apply"; no secrets, no administrators',
  examples: [{ does: 'Begin to keep the settings beside your code', line: 'vault export > desired.yaml' }],
  options: {},
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const document = exportedDocument(await readVaultState(vault, vault.db.reader));
      const { stringify } = await import('yaml');
      terminal.stdout.write(
        `${heading}${stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })}`,
      );
    }),
});
