/** `vault certificate list`: all certificates, those that fit a filter, or the deleted ones. */
import { parseTimestamp } from '../../../base/timestamp.ts';
import {
  type CertificateOnPage,
  pagesOfCertificates,
} from '../../../domain/certificates/certificate-search.ts';
import { type CertificateView, certificateView } from '../../../domain/certificates/certificate-views.ts';
import type { DeletedCertificateView } from '../../../domain/certificates/deleted-certificate-views.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { settingsInUse } from '../../settings/recorded-settings.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { daysUntil, jsonPieces, printPieces } from '../../terminal/output.ts';
import { jsonOption, printTable } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { filterFor, filterOptions, givenFilters, readFilter } from './certificate-filter.ts';
import { certificatesThere } from './certificates-there.ts';
import { allDeleted, printDeleted } from './deleted-list.ts';

export const listCommand = command({
  name: 'certificate list',
  description: 'List certificates',
  examples: [
    { does: 'List all certificates with status and expiry', line: 'vault certificate list' },
    { does: 'Print them as JSON', line: 'vault certificate list --json' },
    {
      does: 'List what expires within 30 days, or has expired',
      line: 'vault certificate list --expiring 30d',
    },
    {
      does: 'List the valid certificates of one issuer under example.com',
      line: 'vault certificate list --issuer local-ca --status valid --search example.com',
    },
    { does: 'List the certificates with a label', line: 'vault certificate list --label team=web' },
    { does: 'List deleted certificates that can be restored', line: 'vault certificate list --deleted' },
  ],
  options: {
    ...filterOptions,
    ...jsonOption,
    deleted: {
      type: 'boolean',
      description: 'list deleted certificates, which "certificate undelete" restores',
    },
  },
  run: async (args, terminal) => {
    const [given] = givenFilters(args);
    if (args.deleted && given !== undefined) {
      throw new Misuse(`--deleted and ${given} exclude each other`, 'Use one of them.');
    }
    const read = readFilter(args);
    if (args.deleted) {
      const deleted = await onVault(
        args,
        terminal,
        'refuse',
        (vault, { keepDeleted }) => allDeleted(vault, keepDeleted),
        (remote) => remote.list<DeletedCertificateView>('/deleted-certificates'),
      );
      printDeleted(deleted, terminal, args);
      return;
    }
    const now = terminal.world.now();
    const print = async (pages: AsyncIterable<readonly CertificateView[]>) => {
      if (args.json) await printPieces(jsonPieces(pages), terminal.stdout);
      else printCertificates((await Array.fromAsync(pages)).flat(), terminal, given !== undefined);
    };
    await onVault(
      args,
      terminal,
      'refuse',
      async (vault, settings) => {
        const { publicUrl } = await settingsInUse(vault, settings);
        await print(views(pagesOfCertificates(vault, await filterFor(vault, read)), now, publicUrl));
      },
      (remote) => print(certificatesThere(remote, read, now)),
    );
  },
});

function printCertificates(
  certificates: readonly CertificateView[],
  terminal: Terminal,
  isFiltered: boolean,
): void {
  if (certificates.length === 0) {
    terminal.stderr.write(
      isFiltered
        ? 'No matching certificates.\n'
        : 'No certificates yet.\n  Try: vault certificate create --name NAME --domain DOMAIN\n',
    );
    return;
  }
  const now = terminal.world.now();
  const hasOwners = certificates.some(({ owner }) => owner !== null);
  const hasLabels = certificates.some(({ labels }) => labels.length > 0);
  printTable(
    terminal,
    [
      { title: 'NAME', holds: 'name' },
      'STATUS',
      'EXPIRES IN',
      { title: 'ISSUER', holds: 'name' },
      ...(hasOwners ? [{ title: 'ACME CLIENT', holds: 'name' } as const] : []),
      'VERSION',
      { title: 'DOMAINS', holds: 'list' },
      ...(hasLabels ? [{ title: 'LABELS', holds: 'list' } as const] : []),
    ],
    certificates.map(({ name, status, issuer, owner, domains, labels, current_version: current }) => [
      ...[name, status],
      current === null ? '-' : daysUntil(parseTimestamp(current.not_after) ?? 0, now),
      issuer ?? 'imported',
      ...(hasOwners ? [owner?.name ?? '-'] : []),
      String(current?.version ?? '-'),
      domains,
      ...(hasLabels ? [labels] : []),
    ]),
  );
}

async function* views(
  pages: AsyncIterable<readonly CertificateOnPage[]>,
  now: number,
  publicUrl = '',
): AsyncGenerator<CertificateView[]> {
  for await (const page of pages) yield page.map((row) => certificateView(row, now, publicUrl));
}
