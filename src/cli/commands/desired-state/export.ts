/** `vault export`: prints the state of the vault as a document for `vault apply`. */
import { exportedDocument } from '../../../domain/desired-state/state-export.ts';
import { readVaultState, type VaultState } from '../../../domain/desired-state/vault-state.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';

const heading = `# yaml-language-server: $schema=vault.schema.json
# State of the vault, for "vault apply -f FILE". Secrets are not included: "keep" leaves the stored secret unchanged.
`;

export const exportCommand = command({
  name: 'export',
  description: 'Export the state of the vault for "vault apply"',
  examples: [
    {
      does: 'Export the state to a file, without secrets and administrators',
      line: 'vault export > desired.yaml',
    },
  ],
  options: {},
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      terminal.stdout.write(await exportText(await readVaultState(vault, vault.db.reader)));
    }),
});

/** The document. The same state always gives the same text. */
export async function exportText(state: VaultState): Promise<string> {
  const { Document, isScalar, visit } = await import('yaml');
  const document = new Document(exportedDocument(state), { aliasDuplicateObjects: false });
  // Without quotes, << is YAML's merge key.
  visit(document, {
    Pair: (_, { key }) => {
      if (isScalar(key) && key.value === '<<') key.type = 'QUOTE_DOUBLE';
    },
  });
  return `${heading}${document.toString({ lineWidth: 0 })}`;
}
