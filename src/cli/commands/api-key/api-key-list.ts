/** `vault api-key list`: all API keys, as JSON or as a table. */
import { type ApiKeyView, allApiKeys } from '../../../domain/access/api-keys.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonPieces, printPieces } from '../../terminal/output.ts';
import { printList } from '../../terminal/table.ts';
import { keysThere } from './api-key-there.ts';

export const listCommand = command({
  name: 'api-key list',
  description: 'List API keys, as JSON or as a table',
  examples: [
    { does: 'List all keys as JSON, without their secrets', line: 'vault api-key list' },
    { does: 'List them as a table', line: 'vault api-key list --table' },
  ],
  options: {
    json: { type: 'boolean', description: 'print JSON, which is the default' },
    table: { type: 'boolean', description: 'print a table' },
  },
  run: async (args, terminal) => {
    if (args.json && args.table) {
      throw new Misuse('--json and --table exclude each other', 'Use one of them.');
    }
    const print = async (pages: AsyncIterable<readonly ApiKeyView[]>) => {
      if (!args.table) return printPieces(jsonPieces(pages), terminal.stdout);
      printList(terminal, { json: false }, (await Array.fromAsync(pages)).flat(), {
        none: 'No API keys yet.\n  Try: vault api-key create --help',
        columns: [
          'ID',
          { title: 'NAME', holds: 'name' },
          'STATE',
          'ROLE',
          { title: 'SCOPES', holds: 'list' },
          { title: 'CERTIFICATES', holds: 'list' },
          { title: 'PROFILES', holds: 'list' },
          { title: 'CLIENT CERTIFICATE', holds: 'name' },
          { title: 'EXPIRES', holds: 'time' },
          { title: 'LAST USED', holds: 'time' },
        ],
        row: (key) => [
          ...[String(key.id), key.name, key.state, key.role ?? '-'],
          ...[key.scopes, key.certificates.length === 0 ? '-' : key.certificates],
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
      (vault) => print(allApiKeys(vault)),
      (remote) => print(keysThere(remote)),
    );
  },
});
