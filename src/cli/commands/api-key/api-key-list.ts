/** `vault api-key list`: all API keys, or those with some labels, without their secrets. */
import { type ApiKeyView, allApiKeys } from '../../../domain/access/api-key-views.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonPieces, printPieces } from '../../terminal/output.ts';
import { printList } from '../../terminal/table.ts';
import { labelFilterOption, labelsToFind } from '../label-options.ts';
import { keysThere } from './api-key-there.ts';

export const listCommand = command({
  name: 'api-key list',
  description: 'List API keys, as JSON or as a table',
  examples: [
    { does: 'List all keys as JSON, without their secrets', line: 'vault api-key list' },
    { does: 'List them as a table', line: 'vault api-key list --table' },
  ],
  options: {
    ...labelFilterOption,
    json: { type: 'boolean', description: 'print JSON, which is the default' },
    table: { type: 'boolean', description: 'print a table' },
  },
  run: async (args, terminal) => {
    if (args.json && args.table) {
      throw new Misuse('--json and --table exclude each other', 'Use one of them.');
    }
    const labels = labelsToFind(args.label);
    const print = async (pages: AsyncIterable<readonly ApiKeyView[]>) => {
      if (!args.table) return printPieces(jsonPieces(pages), terminal.stdout);
      const keys = (await Array.fromAsync(pages)).flat();
      const hasLabels = keys.some((key) => key.labels.length > 0);
      printList(terminal, { json: false }, keys, {
        none:
          labels === undefined
            ? 'No API keys yet.\n  Try: vault api-key create --help'
            : 'No matching API keys.',
        columns: [
          'ID',
          { title: 'NAME', holds: 'name' },
          'STATE',
          'ROLE',
          { title: 'SCOPES', holds: 'list' },
          { title: 'CERTIFICATES', holds: 'list' },
          ...(hasLabels ? [{ title: 'LABELS', holds: 'list' } as const] : []),
          { title: 'PROFILES', holds: 'list' },
          { title: 'CLIENT CERTIFICATE', holds: 'name' },
          { title: 'EXPIRES', holds: 'time' },
          { title: 'LAST USED', holds: 'time' },
        ],
        row: (key) => [
          ...[String(key.id), key.name, key.state, key.role ?? '-'],
          ...[key.scopes, accessOf(key)],
          ...(hasLabels ? [key.labels] : []),
          key.profiles.length === 0 ? 'any' : key.profiles,
          key.client_certificate ?? '-',
          ...[key.expires_at ?? 'never', key.last_used_at ?? 'never'],
        ],
      });
    };
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => print(allApiKeys(vault, labels)),
      (remote) => print(keysThere(remote, labels)),
    );
  },
});

/** The certificates that a key may access, as names and labels. */
function accessOf({ certificates, certificate_labels: labels }: ApiKeyView): readonly string[] | '-' {
  const all = [...certificates, ...labels];
  return all.length === 0 ? '-' : all;
}
