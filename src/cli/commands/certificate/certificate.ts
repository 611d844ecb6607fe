/** `vault certificate …`: manages certificates directly in the database, without HTTP. */
import { OperatorError } from '../../../base/operator-error.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { pagesOfCertificates } from '../../../domain/certificates/certificate-search.ts';
import { certificateStatus } from '../../../domain/certificates/certificate-status.ts';
import {
  type CertificateView,
  certificateView,
  versionView,
} from '../../../domain/certificates/certificate-views.ts';
import { deleteCertificate } from '../../../domain/certificates/certificates.ts';
import type { DatabaseContext } from '../../../domain/contexts.ts';
import { stepsOf } from '../../../domain/issuance/attempt.ts';
import { issuerWithId } from '../../../domain/issuance/issuers.ts';
import { openRenewalOf } from '../../../domain/renewals/renewals.ts';
import { certificateSummary, requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { keyPins } from '../../../domain/versions/next-key.ts';
import { pageVersions } from '../../../domain/versions/versions.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { daysUntil, facts, jsonPieces, jsonText, printPieces, table } from '../../terminal/output.ts';
import { createCommand } from './certificate-create.ts';
import { importCommand } from './certificate-import.ts';
import { nameOption } from './certificate-options.ts';
import { renewCommand } from './certificate-renew.ts';
import { revokeCommand } from './certificate-revoke.ts';
import { updateCommand } from './certificate-update.ts';

const jsonOption = { json: { type: 'boolean', description: 'print JSON' } } as const;

const list = command({
  name: 'certificate list',
  description: 'List certificates',
  examples: [
    { does: 'List all certificates with status and expiry', line: 'vault certificate list' },
    { does: 'Print them as JSON', line: 'vault certificate list --json' },
  ],
  options: jsonOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault, { publicUrl }) => {
      const now = vault.world.now();
      if (args.json) {
        await printPieces(jsonPieces(allViews(vault, now, publicUrl)), terminal.stdout);
        return;
      }
      const rows = (await Array.fromAsync(pagesOfCertificates(vault))).flat();
      if (rows.length === 0) {
        terminal.stderr.write(
          'No certificates yet.\n  Try: vault certificate create --name NAME --domain DOMAIN\n',
        );
        return;
      }
      const header = ['NAME', 'STATUS', 'EXPIRES IN', 'ISSUER', 'VERSION', 'DOMAINS'];
      terminal.stdout.write(
        table(
          header,
          rows.map((row) => [
            row.name,
            certificateStatus(row.current, now, row.disabled_at !== null),
            row.current === null ? '-' : daysUntil(row.current.not_after, now),
            row.issuer_name ?? 'imported',
            String(row.current_version ?? '-'),
            (JSON.parse(row.domains) as string[]).join(' '),
          ]),
        ),
      );
    }),
});

const show = command({
  name: 'certificate show',
  description: 'Show a certificate and its versions',
  examples: [{ does: 'Show a certificate and its versions', line: 'vault certificate show --name web' }],
  options: { ...nameOption, ...jsonOption },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault, { publicUrl }) => {
      const { id, current_version } = await requireCertificate(vault.db.reader, args.name, { suggest: true });
      const row = await certificateSummary(vault, args.name);
      if (row === undefined) return;
      const view = certificateView(row, vault.world.now(), publicUrl ?? '');
      const pins = await keyPins(vault.db.reader, { id, current_version });
      if (args.json) {
        terminal.stdout.write(
          jsonText({ ...view, public_key_pin: pins.current, next_public_key_pin: pins.next }),
        );
        return;
      }
      const open = await openRenewalOf(vault, id);
      const fallback = await issuerWithId(vault, row.fallback_issuer_id ?? 0);
      terminal.stdout.write(
        facts([
          ['Name', view.name],
          ['Status', view.status],
          ['Domains', view.domains.join(' ')],
          ['Key type', view.key_type],
          ['Issuer', view.issuer ?? 'imported'],
          ...(fallback === undefined ? [] : [['Fallback', fallback.name] as const]),
          ...(row.challenge === null ? [] : [['Challenge', row.challenge] as const]),
          ...(row.profile === null ? [] : [['Profile', row.profile] as const]),
          ...(pins.current === null ? [] : [['Public key pin', pins.current] as const]),
          ...(pins.next === null ? [] : [['Next key pin', pins.next] as const]),
          ['Created', view.created_at],
          ['Renewal', view.renewal.next_at ?? (view.auto_renew ? 'not scheduled yet' : 'not automatic')],
          ...(open === undefined ? [] : [['Renewing', stepsOf(open).at(-1)?.text ?? open.status] as const]),
          ...(view.renewal.last_error === null ? [] : [['Last error', view.renewal.last_error] as const]),
        ]),
      );
      const versions = await pageVersions(vault, id, { limit: 20 });
      if (versions.length === 0) {
        terminal.stdout.write('\nNo versions yet.\n');
        return;
      }
      const cells = versions.map((version) => {
        const shown = versionView(version, row.current_version);
        const current = shown.current ? `${shown.version} (current)` : String(shown.version);
        const source = version.revoked_at === null ? shown.source : `${shown.source}, revoked`;
        return [current, shown.not_before, shown.not_after, source, shown.fingerprint_sha256];
      });
      terminal.stdout.write(
        `\n${table(['VERSION', 'NOT BEFORE', 'NOT AFTER', 'SOURCE', 'SHA-256 FINGERPRINT'], cells)}`,
      );
    }),
});

const remove = command({
  name: 'certificate delete',
  description: 'Delete a certificate with all its versions and keys',
  examples: [
    { does: 'Delete a certificate that no API key lists', line: 'vault certificate delete --name web' },
    {
      does: 'Delete a certificate and remove it from the allowlists of API keys',
      line: 'vault certificate delete --name mail --force',
    },
  ],
  options: {
    ...nameOption,
    force: {
      type: 'boolean',
      description:
        'delete it even if API keys list it (it leaves their allowlists) or the vault serves HTTPS with it',
    },
  },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault, { tls }) => {
      if (tls?.kind === 'certificate' && tls.name === args.name && !args.force) {
        throw new OperatorError(`certificate ${args.name} is in use: the vault serves HTTPS with it`, {
          hint: 'Clients that pin its key would lose access. Set another certificate with --tls-certificate first, or add --force.',
        });
      }
      await deleteCertificate(vault, localCli, args.name, { force: args.force });
      terminal.stderr.write(`Deleted certificate ${args.name}.\n`);
    }),
});

export const certificateCommands = commandGroup(
  'certificate',
  'Create, import, list, renew and revoke certificates',
  {
    create: createCommand,
    import: importCommand,
    list,
    show,
    renew: renewCommand,
    update: updateCommand,
    revoke: revokeCommand,
    delete: remove,
  },
);

async function* allViews(
  vault: DatabaseContext,
  now: number,
  publicUrl = '',
): AsyncGenerator<CertificateView[]> {
  for await (const page of pagesOfCertificates(vault)) {
    yield page.map((row) => certificateView(row, now, publicUrl));
  }
}
