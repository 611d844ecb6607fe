/** `vault export`: what the vault holds, as the file that "vault apply" takes. */
import { exportedDocument } from '../../../domain/desired-state/state-export.ts';
import { readVaultState, type VaultState } from '../../../domain/desired-state/vault-state.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';

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
      terminal.stdout.write(await exportText(await readVaultState(vault, vault.db.reader)));
    }),
});

/** The file: the same text for the same state. */
export async function exportText(state: VaultState): Promise<string> {
  const { Document, isScalar, visit } = await import('yaml');
  const document = new Document(exportedDocument(state), { aliasDuplicateObjects: false });
  // Without quotes, this name is YAML's merge key.
  visit(document, {
    Pair: (_, { key }) => {
      if (isScalar(key) && key.value === '<<') key.type = 'QUOTE_DOUBLE';
    },
  });
  return `${heading}${document.toString({ lineWidth: 0 })}`;
}
