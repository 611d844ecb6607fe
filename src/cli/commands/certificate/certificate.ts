/** `vault certificate …`: manages certificates directly in the database, without HTTP. */
import {
  type CertificateView,
  certificateView,
  versionView,
} from '../../../domain/certificates/certificate-views.ts';
import { issuerWithId } from '../../../domain/issuers/issuers.ts';
import { leafInProfile } from '../../../domain/private-ca/profile-rules.ts';
import { stepsOf } from '../../../domain/renewals/attempt.ts';
import { openRenewalOf } from '../../../domain/renewals/renewals.ts';
import { certificateSummary, requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { keyPins } from '../../../domain/versions/next-key.ts';
import { pageVersions } from '../../../domain/versions/versions.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { settingsInUse } from '../../settings/recorded-settings.ts';
import { facts, jsonText } from '../../terminal/output.ts';
import { jsonOption, table } from '../../terminal/table.ts';
import { createCommand } from './certificate-create.ts';
import { deleteCommand, purgeCommand, undeleteCommand } from './certificate-delete.ts';
import { exportCommand } from './certificate-export.ts';
import { importCommand } from './certificate-import.ts';
import { listCommand } from './certificate-list.ts';
import { nameOption } from './certificate-options.ts';
import { renewCommand } from './certificate-renew.ts';
import { revokeCommand } from './certificate-revoke.ts';
import { updateCommand } from './certificate-update.ts';

const show = command({
  name: 'certificate show',
  description: 'Show a certificate and its versions',
  examples: [{ does: 'Show a certificate and its versions', line: 'vault certificate show --name web' }],
  options: { ...nameOption, ...jsonOption },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault, settings) => {
      const { publicUrl } = await settingsInUse(vault, settings);
      const certificate = await requireCertificate(vault.db.reader, args.name, { suggest: true });
      const { id, current_version } = certificate;
      const row = await certificateSummary(vault, args.name);
      if (row === undefined) return;
      const view = certificateView(row, vault.world.now(), publicUrl ?? '');
      const pins = await keyPins(vault.db.reader, { id, current_version });
      const leaf = await leafInProfile(vault.db.reader, certificate);
      const { usage = 'both', uris = [], emails = [], subject = [] } = leaf;
      if (args.json) {
        const others = { public_key_pin: pins.current, next_public_key_pin: pins.next, csr: row.csr };
        terminal.stdout.write(jsonText({ ...view, ...others, usage, subject }));
        return;
      }
      const open = await openRenewalOf(vault, id);
      const fallback = await issuerWithId(vault, row.fallback_issuer_id ?? 0);
      terminal.stdout.write(
        facts([
          ['Name', view.name],
          ['Status', view.status],
          ['Domains', view.domains.join(' ')],
          ...(uris.length === 0 ? [] : [['URIs', uris.join(' ')] as const]),
          ...(emails.length === 0 ? [] : [['Email', emails.join(' ')] as const]),
          ...(subject.length === 0 ? [] : [['Subject', subject.join(', ')] as const]),
          ...(usage === 'both' ? [] : [['Usage', usage] as const]),
          ['Key type', view.key_type],
          ...(row.csr === null ? [] : [['Private key', 'held by the client; issued for its CSR'] as const]),
          ['Issuer', view.issuer ?? 'imported'],
          ...(view.owner === null ? [] : [['ACME client', view.owner.name] as const]),
          ...(fallback === undefined ? [] : [['Fallback', fallback.name] as const]),
          ...(row.challenge === null ? [] : [['Challenge', row.challenge] as const]),
          ...(row.profile === null ? [] : [['Profile', row.profile] as const]),
          ...(pins.current === null ? [] : [['Public key pin', pins.current] as const]),
          ...(pins.next === null ? [] : [['Next key pin', pins.next] as const]),
          ['Created', view.created_at],
          ['Renewal', renewalText(view)],
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

function renewalText({ owner, renewal, auto_renew }: CertificateView): string {
  if (owner !== null) return 'by its ACME client';
  return renewal.next_at ?? (auto_renew ? 'not scheduled yet' : 'not automatic');
}

export const certificateCommands = commandGroup(
  'certificate',
  'Create, import, list, renew and revoke certificates',
  {
    create: createCommand,
    import: importCommand,
    export: exportCommand,
    list: listCommand,
    show,
    renew: renewCommand,
    update: updateCommand,
    revoke: revokeCommand,
    delete: deleteCommand,
    undelete: undeleteCommand,
    purge: purgeCommand,
  },
);
