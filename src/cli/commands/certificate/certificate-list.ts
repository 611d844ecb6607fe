/** `vault certificate list`: all certificates, those that fit a filter, or the deleted ones. */
import { parseJson } from '../../../base/json.ts';
import {
  type CertificateOnPage,
  pagesOfCertificates,
} from '../../../domain/certificates/certificate-search.ts';
import { certificateStatus } from '../../../domain/certificates/certificate-status.ts';
import { type CertificateView, certificateView } from '../../../domain/certificates/certificate-views.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { settingsInUse } from '../../settings/recorded-settings.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { daysUntil, jsonPieces, printPieces } from '../../terminal/output.ts';
import { jsonOption, printTable } from '../../terminal/table.ts';
import { filterFor, filterOptions, givenFilters, readFilter } from './certificate-filter.ts';
import { printDeleted } from './deleted-list.ts';

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
    await withVault(args, terminal, 'refuse', async (vault, settings) => {
      if (args.deleted) return printDeleted(vault, terminal, settings.keepDeleted, args);
      const { publicUrl } = await settingsInUse(vault, settings);
      const now = vault.world.now();
      const pages = pagesOfCertificates(vault, await filterFor(vault, read));
      if (args.json) {
        await printPieces(jsonPieces(views(pages, now, publicUrl)), terminal.stdout);
        return;
      }
      const rows = (await Array.fromAsync(pages)).flat();
      if (rows.length === 0) {
        terminal.stderr.write(
          given === undefined
            ? 'No certificates yet.\n  Try: vault certificate create --name NAME --domain DOMAIN\n'
            : 'No matching certificates.\n',
        );
        return;
      }
      const hasOwners = rows.some((row) => row.owner_name !== null);
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
        ],
        rows.map((row) => [
          row.name,
          certificateStatus(row.current, now, row.disabled_at !== null),
          row.current === null ? '-' : daysUntil(row.current.not_after, now),
          row.issuer_name ?? 'imported',
          ...(hasOwners ? [row.owner_name ?? '-'] : []),
          String(row.current_version ?? '-'),
          parseJson(row.domains),
        ]),
      );
    });
  },
});

async function* views(
  pages: AsyncIterable<readonly CertificateOnPage[]>,
  now: number,
  publicUrl = '',
): AsyncGenerator<CertificateView[]> {
  for await (const page of pages) yield page.map((row) => certificateView(row, now, publicUrl));
}
