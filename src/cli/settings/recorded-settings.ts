/** Translates settings to and from what a running server records, so that other commands follow the server. */
import { parseCertName } from '../../base/cert-name.ts';
import type { Keyring } from '../../crypto/secrets/keyring.ts';
import type { DatabaseContext } from '../../domain/contexts.ts';
import { servingServers } from '../../domain/instance/served-settings.ts';
import type { ServedSettings } from '../../domain/nodes/server-record.ts';
import { hostName } from './host-name.ts';
import type { Settings } from './settings.ts';
import type { TlsSettings } from './tls-settings.ts';

/**
 * What the server `instance` with these master keys records. `url` has the port that it listens on, even if the
 * settings leave the choice open.
 */
export function recordedSettings(
  settings: Settings,
  { url, instance, keyring }: { readonly url: string; readonly instance: string; readonly keyring: Keyring },
): ServedSettings {
  const { listen, publicUrl, tls, backups } = settings;
  const { port, protocol } = new URL(url);
  const files = tls?.kind === 'files' ? tls : undefined;
  return {
    instance,
    listen: { host: listen.host, port: Number(port || (protocol === 'https:' ? 443 : 80)) },
    public_url: publicUrl ?? null,
    tls_certificate: tls?.kind === 'certificate' ? tls.name : null,
    tls_cert_file: files?.certFile ?? null,
    tls_key_file: files?.keyFile ?? null,
    backup_dir: backups?.directory ?? null,
    backup_every: backups?.every ?? null,
    backup_keep: backups?.keep ?? null,
    master_keys: readsKeysOnlyAtStart(settings) ? keyring.names() : null,
  };
}

/** Systemd copies credentials when it starts the server; a program and standard input are read once. */
function readsKeysOnlyAtStart({ masterKeyFile, masterKeyCommand, credentialsDir }: Settings): boolean {
  const isCredential = credentialsDir !== undefined && masterKeyFile.startsWith(`${credentialsDir}/`);
  return isCredential || masterKeyCommand !== undefined || masterKeyFile === '-';
}

/**
 * The settings of this command, with those of the running server in place of its own: of the one on this host, where
 * several nodes share the database.
 */
export async function settingsInUse(vault: DatabaseContext, settings: Settings): Promise<Settings> {
  const servers = await servingServers(vault.db.reader);
  const here = hostName();
  const served = servers.find(({ host }) => host === here) ?? servers[0];
  return served === undefined ? settings : settingsOf(served.settings, settings);
}

/** The settings of each running server; those of this command if none runs. */
export async function allSettingsInUse(vault: DatabaseContext, settings: Settings): Promise<Settings[]> {
  const servers = await servingServers(vault.db.reader);
  return servers.length === 0 ? [settings] : servers.map((served) => settingsOf(served.settings, settings));
}

function settingsOf(served: ServedSettings, settings: Settings): Settings {
  const { listen, public_url, backup_dir: directory, backup_every: every, backup_keep: keep } = served;
  return {
    ...settings,
    listen,
    publicUrl: public_url ?? undefined,
    tls: tlsOf(served),
    backups: directory === null || every === null || keep === null ? undefined : { directory, every, keep },
  };
}

function tlsOf(served: ServedSettings): TlsSettings | undefined {
  const { tls_certificate, tls_cert_file: certFile, tls_key_file: keyFile } = served;
  const name = tls_certificate === null ? undefined : parseCertName(tls_certificate);
  if (name !== undefined) return { kind: 'certificate', name };
  return certFile === null || keyFile === null ? undefined : { kind: 'files', certFile, keyFile };
}
