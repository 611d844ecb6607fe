/** `vault certificate …`: certificates are made, listed, shown and removed directly in the database, without HTTP. */
import { X509Certificate } from 'node:crypto';
import { OperatorError } from '../../../base/operator-error.ts';
import { publicKeyPin } from '../../../crypto/public-key-pin.ts';
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
import { pageVersions, versionNumbered } from '../../../domain/versions/versions.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { daysUntil, facts, jsonPieces, jsonText, printPieces, table } from '../../terminal/output.ts';
import { createCommand } from './certificate-create.ts';
import { importCommand } from './certificate-import.ts';
import { nameOption } from './certificate-options.ts';
import { renewCommand } from './certificate-renew.ts';
import { revokeCommand } from './certificate-revoke.ts';
import { updateCommand } from './certificate-update.ts';

const jsonOption = { json: { type: 'boolean', description: 'print JSON, for programs' } } as const;

const list = command({
  name: 'certificate list',
  description: 'list all certificates',
  examples: [
    { does: 'See which certificates there are, and how they are', line: 'vault certificate list' },
    { does: 'For a program', line: 'vault certificate list --json' },
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
          'There are no certificates yet. Make one with "vault certificate create" or "import".\n',
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
  description: 'show a certificate and its versions',
  examples: [{ does: 'See one with its versions', line: 'vault certificate show --name web' }],
  options: { ...nameOption, ...jsonOption },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault, { publicUrl }) => {
      const { id } = await requireCertificate(vault.db.reader, args.name, { suggest: true });
      const row = await certificateSummary(vault, args.name);
      if (row === undefined) return;
      const view = certificateView(row, vault.world.now(), publicUrl ?? '');
      if (args.json) {
        terminal.stdout.write(jsonText(view));
        return;
      }
      const open = await openRenewalOf(vault, id);
      const pin = await currentPin(vault, id, row.current_version);
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
          ...(pin === undefined ? [] : [['Public key pin', pin] as const]),
          ['Created', view.created_at],
          ['Renewal', view.renewal.next_at ?? (view.auto_renew ? 'not planned yet' : 'by import only')],
          ...(open === undefined ? [] : [['Renewing', stepsOf(open).at(-1)?.text ?? open.status] as const]),
          ...(view.renewal.last_error === null ? [] : [['Last error', view.renewal.last_error] as const]),
        ]),
      );
      const versions = await pageVersions(vault, id, { limit: 20 });
      if (versions.length === 0) {
        terminal.stdout.write('\nNothing has been issued for it yet.\n');
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
  description: 'remove a certificate with all its versions and keys',
  examples: [
    { does: 'Remove one that no API key names', line: 'vault certificate delete --name web' },
    {
      does: 'Remove it, and take it out of the allowlists of API keys',
      line: 'vault certificate delete --name mail --force',
    },
  ],
  options: {
    ...nameOption,
    force: {
      type: 'boolean',
      description:
        'also where API keys name it (it leaves their allowlists) or the vault serves HTTPS with it',
    },
  },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault, { tls }) => {
      if (tls?.kind === 'certificate' && tls.name === args.name && !args.force) {
        throw new OperatorError(`the vault serves HTTPS with ${args.name}`, {
          hint: 'Clients that pin its key would not know the vault any more. Choose another with --tls-certificate first, or add --force.',
        });
      }
      await deleteCertificate(vault, localCli, args.name, { force: args.force });
      terminal.stderr.write(`Certificate ${args.name} is deleted.\n`);
    }),
});

export const certificateCommands = commandGroup(
  'certificate',
  'make, import, list, show, renew, change, revoke and delete certificates',
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

/** By which clients can know a server with this certificate; undefined while nothing is issued. */
async function currentPin(
  vault: DatabaseContext,
  id: number,
  version: number | null,
): Promise<string | undefined> {
  const current = version === null ? undefined : await versionNumbered(vault, id, version);
  return current && publicKeyPin(new X509Certificate(current.certificate_pem));
}

async function* allViews(
  vault: DatabaseContext,
  now: number,
  publicUrl = '',
): AsyncGenerator<CertificateView[]> {
  for await (const page of pagesOfCertificates(vault)) {
    yield page.map((row) => certificateView(row, now, publicUrl));
  }
}
