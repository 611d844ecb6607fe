/**
 * What a running server does at SIGHUP: reads its settings again, applies what it can, and names what needs a restart.
 */
import { isDeepStrictEqual } from 'node:util';
import { minute } from '../../base/duration.ts';
import { logLevels } from '../../base/log.ts';
import type { Hangups } from '../runtime/hangup-signal.ts';
import type { ServerLog } from '../runtime/log-output.ts';
import type { administrationOptions } from '../settings/administration-settings.ts';
import { refuseUnusableBackups } from '../settings/backup-settings.ts';
import type { SettingName, Settings } from '../settings/settings.ts';
import { refuseUnusableSyslog } from './serve-audit.ts';
import { refuseInsecureSettings } from './serve-tls.ts';

/** How a server was started. */
export type ServerStart = {
  readonly settings: Settings;
  /** The random name of this server. */
  readonly instance: string;
  /** Reads the settings again, from the same flags and environment. */
  readonly read: () => Promise<Settings>;
  readonly hangups: Hangups;
};

type Values = Readonly<Record<string, (settings: Settings) => unknown>>;

/** The settings that a running server adopts, as the log shows them. */
const reloadable = {
  log_level: ({ logLevel }) => logLevel,
  trusted_proxies: ({ clients }) => clients.trustedProxies.map(({ text }) => text).join(','),
  session_idle: ({ sessionLimits }) => `${sessionLimits.idle / minute}m`,
  session_lifetime: ({ sessionLimits }) => `${sessionLimits.lifetime / minute}m`,
  hide_private_keys: ({ sessionLimits }) => sessionLimits.hidesPrivateKeys,
  second_approval: ({ secondApproval }) => secondApproval,
  require_second_factor: ({ requireSecondFactor }) => requireSecondFactor,
} satisfies Values;

type Fixed = Exclude<
  SettingName,
  'config' | 'no-create' | 'workers' | 'log-level' | 'trusted-proxies' | keyof typeof administrationOptions
>;

/** The settings that only a start reads. `no_create` only matters at a start; `workers` is ignored. */
const fixed: Readonly<Record<Fixed, (settings: Settings) => unknown>> = {
  'data-dir': ({ dataDir }) => dataDir,
  database: ({ database }) => database,
  'database-connections': ({ databaseConnections }) => databaseConnections,
  'master-key-file': ({ masterKeyFile }) => masterKeyFile,
  'master-key-passphrase-file': ({ masterKeyPassphraseFile }) => masterKeyPassphraseFile,
  'master-key-command': ({ masterKeyCommand }) => masterKeyCommand,
  listen: ({ listen }) => listen,
  'public-url': ({ publicUrl }) => publicUrl,
  'max-connections': ({ clients }) => clients.maxConnections,
  'api-key-rate': ({ clients }) => clients.apiKeyRate,
  'backup-dir': ({ backups }) => backups?.directory,
  'backup-every': ({ backups }) => backups?.every,
  'backup-keep': ({ backups }) => backups?.keep,
  'audit-retention': ({ audit }) => audit.keepFor,
  'keep-deleted': ({ keepDeleted }) => keepDeleted,
  'keep-versions': ({ keepVersions }) => keepVersions,
  'audit-file': ({ audit }) => audit.file,
  'audit-syslog': ({ audit }) => audit.syslog?.url,
  'audit-syslog-ca': ({ audit }) => audit.syslogCaFile,
  'low-disk-space': ({ audit }) => audit.lowSpace,
  'acme-http-listen': ({ acmeHttpListen }) => acmeHttpListen,
  'acme-tls-listen': ({ acmeTlsListen }) => acmeTlsListen,
  resolver: ({ resolver }) => resolver,
  'acme-drafts': ({ acmeDrafts }) => acmeDrafts,
  'allow-outbound': ({ allowOutbound }) => allowOutbound?.map(({ network, port }) => [network.text, port]),
  'acme-validation-allow': ({ acmeServer }) =>
    acmeServer.allowed.map(({ network, port }) => [network.text, port]),
  'acme-validation-forbid': ({ acmeServer }) => acmeServer.forbidden.map(({ text }) => text),
  'endpoint-allow': ({ endpoints }) => endpoints.allowed.map(({ network, port }) => [network.text, port]),
  'endpoint-forbid': ({ endpoints }) => endpoints.forbidden.map(({ text }) => text),
  'acme-caa-identity': ({ acmeServer }) => acmeServer.caaIdentities,
  'acme-terms-of-service': ({ acmeServer }) => acmeServer.termsOfService,
  'tls-certificate': ({ tls }) => (tls?.kind === 'certificate' ? tls.name : undefined),
  'tls-cert-file': ({ tls }) => (tls?.kind === 'files' ? tls.certFile : undefined),
  'tls-key-file': ({ tls }) => (tls?.kind === 'files' ? tls.keyFile : undefined),
  'metrics-listen': ({ metricsListen }) => metricsListen,
  'metrics-token-file': ({ metricsTokenFile }) => metricsTokenFile,
  'metrics-label': ({ metricsLabel }) => metricsLabel,
  'oidc-issuer': ({ oidc }) => oidc?.issuer,
  'oidc-client-id': ({ oidc }) => oidc?.clientId,
  'oidc-client-secret-file': ({ oidc }) => oidc?.clientSecretFile,
  'oidc-scope': ({ oidc }) => oidc?.scope,
  'oidc-ca-file': ({ oidc }) => oidc?.caFile,
  'oidc-role-claim': ({ oidc }) => oidc?.roles.claim,
  'oidc-admins': ({ oidc }) => oidc?.roles.values.admin,
  'oidc-operators': ({ oidc }) => oidc?.roles.values.operator,
  'oidc-viewers': ({ oidc }) => oidc?.roles.values.viewer,
  'oidc-default-role': ({ oidc }) => oidc?.roles.byDefault,
  'oidc-reach': ({ oidc }) => oidc?.reach,
  'oidc-profiles': ({ oidc }) => oidc?.profiles,
  'oidc-device-flow': ({ oidc }) => oidc?.deviceFlow,
  'insecure-http': ({ insecureHttp }) => insecureHttp,
};

/**
 * Throws OperatorError if a server with these settings must not start. A server that runs with `running` does not look
 * at the backup directory that it uses: where its disk hangs, neither the reload nor the process would end.
 */
export async function refuseUnusable(settings: Settings, running?: Settings): Promise<void> {
  refuseInsecureSettings(settings);
  await refuseUnusableSyslog(settings.audit);
  if (settings.backups?.directory !== running?.backups?.directory)
    await refuseUnusableBackups(settings.backups);
}

/**
 * Reads the settings again and hands those in use from now on to `adopt`: `running` with what can be reloaded. Logs
 * what changed, which changes need a restart, and an error in the settings, which changes nothing.
 */
export async function reload(
  running: Settings,
  read: () => Promise<Settings>,
  log: ServerLog,
  adopt: (settings: Settings) => void,
): Promise<void> {
  let next: Settings;
  try {
    next = await read();
    await refuseUnusable(next, running);
  } catch (error) {
    log.error({ err: error }, 'failed to reload the settings; keeping the current ones');
    return;
  }
  const changed = Object.fromEntries(
    changesOf(reloadable, running, next).map((name) => [name, reloadable[name](next)]),
  );
  const needRestart = changesOf(fixed, running, next).map((name) => name.replaceAll('-', '_'));
  const tell = () => {
    log.info({ changed }, 'settings reloaded');
    if (needRestart.length > 0) log.warn({ settings: needRestart }, 'changed settings need a restart');
  };
  const becomesQuieter = logLevels.indexOf(next.logLevel) > logLevels.indexOf(running.logLevel);
  if (becomesQuieter) tell();
  log.setLevel(next.logLevel);
  const { logLevel, sessionLimits, secondApproval, requireSecondFactor } = next;
  const clients = { ...running.clients, trustedProxies: next.clients.trustedProxies };
  adopt({ ...running, logLevel, sessionLimits, secondApproval, requireSecondFactor, clients });
  if (!becomesQuieter) tell();
}

function changesOf<N extends string>(
  values: Readonly<Record<N, (settings: Settings) => unknown>>,
  before: Settings,
  after: Settings,
): N[] {
  const names = Object.keys(values) as N[];
  return names.filter((name) => !isDeepStrictEqual(values[name](before), values[name](after)));
}
