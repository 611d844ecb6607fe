/** `vault certificate show`: a certificate, its settings and its versions. */
import {
  type CertificateSettingsView,
  certificateSettings,
} from '../../../domain/certificates/certificate-settings.ts';
import {
  type CertificateView,
  currentCertificate,
  type RenewalDetailView,
  type VersionView,
  versionView,
} from '../../../domain/certificates/certificate-views.ts';
import { type RolloutView, rolloutOf, rolloutText } from '../../../domain/deployments/rollout.ts';
import { stepsOf } from '../../../domain/renewals/attempt.ts';
import { openRenewalOf } from '../../../domain/renewals/renewals.ts';
import type { Vault } from '../../../domain/vault.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { pageVersions } from '../../../domain/versions/versions.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { settingsInUse } from '../../settings/recorded-settings.ts';
import type { Settings } from '../../settings/settings.ts';
import { facts, jsonText } from '../../terminal/output.ts';
import { jsonOption, table } from '../../terminal/table.ts';
import { nameOption } from './certificate-options.ts';
import { certificatePath, rolloutThere } from './certificates-there.ts';

/** How many versions are shown, newest first. */
const shownVersions = 20;

type Shown = {
  readonly view: CertificateView;
  readonly settings: CertificateSettingsView;
  /** What the renewal that is queued or runs has done last; undefined without one. */
  readonly renewing: string | undefined;
  readonly versions: readonly VersionView[];
  readonly rollout: RolloutView | undefined;
};

export const showCommand = command({
  name: 'certificate show',
  description: 'Show a certificate and its versions',
  examples: [{ does: 'Show a certificate and its versions', line: 'vault certificate show --name web' }],
  options: { ...nameOption, ...jsonOption },
  run: async (args, terminal) => {
    const shown = await onVault(
      args,
      terminal,
      'refuse',
      (vault, settings) => shownHere(vault, settings, args.name),
      (remote) => shownThere(remote, args.name),
    );
    terminal.stdout.write(args.json ? asJson(shown) : asText(shown));
  },
});

async function shownHere(vault: Vault, settings: Settings, name: string): Promise<Shown> {
  const { publicUrl } = await settingsInUse(vault, settings);
  const { id, current_version } = await requireCertificate(vault.db.reader, name, { suggest: true });
  const open = await openRenewalOf(vault, id);
  const versions = await pageVersions(vault, id, { limit: shownVersions });
  return {
    view: await currentCertificate(vault, name, publicUrl ?? ''),
    settings: await certificateSettings(vault, name),
    renewing: open && (stepsOf(open).at(-1)?.text ?? open.status),
    versions: versions.map((version) => versionView(version, current_version)),
    rollout: await rolloutOf(vault, name),
  };
}

async function shownThere(remote: RemoteVault, name: string): Promise<Shown> {
  const path = certificatePath(name);
  // First, because it suggests names for one that is unknown.
  const settings = await remote.get<CertificateSettingsView>(`${path}/settings`);
  const [newest] = await remote.get<RenewalDetailView[]>(`${path}/renewals`, { limit: 1 });
  const isOpen = newest?.status === 'queued' || newest?.status === 'running';
  return {
    view: await remote.get<CertificateView>(path),
    settings,
    renewing: isOpen ? (newest.steps.at(-1)?.text ?? newest.status) : undefined,
    versions: await remote.get<VersionView[]>(`${path}/versions`, { limit: shownVersions }),
    rollout: await rolloutThere(remote, name),
  };
}

function asJson({ view, settings }: Shown): string {
  const { public_key_pin, next_public_key_pin, csr, usage, subject } = settings;
  return jsonText({ ...view, public_key_pin, next_public_key_pin, csr, usage, subject });
}

function asText({ view, settings, renewing, versions, rollout }: Shown): string {
  const progress = rollout && rolloutText(rollout);
  const { usage, uris, emails, subject, fallback_issuer: fallback, challenge, profile } = settings;
  const { public_key_pin: pin, next_public_key_pin: nextPin } = settings;
  const head = facts([
    ['Name', view.name],
    ['Status', view.status],
    ['Domains', view.domains.join(' ')],
    ...(uris.length === 0 ? [] : [['URIs', uris.join(' ')] as const]),
    ...(emails.length === 0 ? [] : [['Email', emails.join(' ')] as const]),
    ...(subject.length === 0 ? [] : [['Subject', subject.join(', ')] as const]),
    ...(view.labels.length === 0 ? [] : [['Labels', view.labels.join(' ')] as const]),
    ...(usage === 'both' ? [] : [['Usage', usage] as const]),
    ['Key type', view.key_type],
    ...(settings.csr === null ? [] : [['Private key', 'held by the client; issued for its CSR'] as const]),
    ['Issuer', view.issuer ?? 'imported'],
    ...(view.owner === null ? [] : [['ACME client', view.owner.name] as const]),
    ...(fallback === null ? [] : [['Fallback', fallback] as const]),
    ...(challenge === null ? [] : [['Challenge', challenge] as const]),
    ...(profile === null ? [] : [['Profile', profile] as const]),
    ...(pin === null ? [] : [['Public key pin', pin] as const]),
    ...(nextPin === null ? [] : [['Next key pin', nextPin] as const]),
    ['Created', view.created_at],
    ['Renewal', renewalText(view)],
    ...(renewing === undefined ? [] : [['Renewing', renewing] as const]),
    ...(view.renewal.last_error === null ? [] : [['Last error', view.renewal.last_error] as const]),
    ...(progress === undefined ? [] : [['Rollout', progress] as const]),
  ]);
  if (versions.length === 0) return `${head}\nNo versions yet.\n`;
  const cells = versions.map(({ version, current, not_before, not_after, source, ...more }) => [
    current ? `${version} (current)` : String(version),
    ...[not_before, not_after],
    settings.revoked_versions.includes(version) ? `${source}, revoked` : source,
    more.fingerprint_sha256,
  ]);
  return `${head}\n${table(['VERSION', 'NOT BEFORE', 'NOT AFTER', 'SOURCE', 'SHA-256 FINGERPRINT'], cells)}`;
}

function renewalText({ owner, renewal, auto_renew }: CertificateView): string {
  if (owner !== null) return 'by its ACME client';
  return renewal.next_at ?? (auto_renew ? 'not scheduled yet' : 'not automatic');
}
