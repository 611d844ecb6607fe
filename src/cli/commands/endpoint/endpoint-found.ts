/** `vault endpoint found`: TLS servers that scans found, and whether the vault knows their certificates. */
import { formatTimestamp } from '../../../base/timestamp.ts';
import { type FindingView, findFindings, findingView } from '../../../domain/scans/findings.ts';
import { maxFindings } from '../../../domain/scans/scanning.ts';
import type { Vault } from '../../../domain/vault.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';

/** `vault endpoint found`. */
export const found = command({
  name: 'endpoint found',
  description: 'List the TLS servers that scans found',
  examples: [
    { does: 'List certificates that the vault does not have', line: 'vault endpoint found' },
    { does: 'List all servers, for a script', line: 'vault endpoint found --all --json' },
  ],
  options: {
    all: { type: 'boolean', description: 'also those with a certificate of the vault' },
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const known = args.all ? undefined : false;
    const all = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => findingsHere(vault, { known }),
      (remote) => remote.list<FindingView>('/endpoint-findings', { known: known?.toString() }),
    );
    printFindings(
      terminal,
      args,
      all,
      args.all ? 'Nothing found yet.\n  Try: vault endpoint scan --help' : noneMissing,
    );
  },
});

/** For an empty list without the servers whose certificate the vault has. */
export const noneMissing =
  'No certificates found that are missing from the vault.\n  Try: vault endpoint found --all';

/** The results of scans, at most as many as the vault stores. */
export async function findingsHere(
  vault: Vault,
  search: { readonly scan?: number; readonly known: boolean | undefined },
): Promise<FindingView[]> {
  const rows = await Array.fromAsync(findFindings(vault, { ...search, limit: maxFindings }));
  return rows.flat().map(findingView);
}

/** Prints a list of findings, and `none` for an empty one. */
export function printFindings(
  terminal: Terminal,
  args: { readonly json: boolean },
  all: readonly FindingView[],
  none: string,
): void {
  if (all.length >= maxFindings) {
    terminal.stderr.write(
      `Warning: the vault stores at most ${maxFindings} servers; the list may be incomplete.\n`,
    );
  }
  const now = formatTimestamp(terminal.world.now());
  printList(terminal, args, all, {
    none,
    columns: [
      { title: 'ADDRESS', holds: 'name' },
      { title: 'NAMES', holds: 'list' },
      { title: 'ISSUER', holds: 'text' },
      { title: 'EXPIRES', holds: 'time' },
      { title: 'CERTIFICATE', holds: 'name' },
      'ENDPOINT',
    ],
    row: ({ address, names, issuer, not_after, certificate, endpoint }) => [
      ...[address, names, issuer, not_after < now ? `${not_after} (expired)` : not_after],
      ...[certificate ?? '-', endpoint ? 'yes' : 'no'],
    ],
  });
  if (args.json || !all.some(({ certificate, endpoint }) => certificate === null && !endpoint)) return;
  terminal.stderr.write('Try: vault endpoint adopt --help\n');
}
