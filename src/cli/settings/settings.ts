/**
 * The table of settings, the source of flags, environment variables, settings file keys and defaults. A flag overrides
 * the environment, which overrides the settings file, which overrides the default.
 */

import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { type LogLevel, logLevels } from '../../base/log.ts';
import type { BackupPlan } from '../../domain/backup/backup-schedule.ts';
import type { AllowedOutbound } from '../../net/outbound-addresses.ts';
import type { Arguments } from '../terminal/arguments.ts';
import type { Environment } from '../terminal/terminal.ts';
import { type AcmeServerSettings, acmeServerOptions, acmeServerSettings } from './acme-server-settings.ts';
import {
  type AdministrationSettings,
  administrationOptions,
  administrationSettings,
} from './administration-settings.ts';
import { type AuditSettings, auditOptions, auditSettings } from './audit-settings.ts';
import { backupOptions, backupPlan } from './backup-settings.ts';
import { type ClientSettings, clientOptions, clientSettings } from './client-settings.ts';
import { type DatabaseSettings, databaseOptions, databaseSettings } from './database-settings.ts';
import { defaultDataDir } from './default-data-dir.ts';
import { deletionOptions, keepDeleted, keepVersions } from './deletion-settings.ts';
import { type EndpointSettings, endpointOptions, endpointSettings } from './endpoint-settings.ts';
import { type MasterKeySettings, masterKeyOptions, masterKeySettings } from './master-key-settings.ts';
import { type MetricsSettings, metricsOptions, metricsSettings } from './metrics-settings.ts';
import { type OidcSettings, oidcOptions, oidcSettings } from './oidc-settings.ts';
import { outboundOptions, outboundSettings } from './outbound-settings.ts';
import {
  type Found,
  type ListenAddress,
  listenAddress,
  logLevel,
  publicUrl,
  resolverAddress,
  truth,
} from './setting-values.ts';
import { ignoredVariables, settingInEnvironment } from './setting-variables.ts';
import { readSettingsFile } from './settings-file.ts';
import { type TlsSettings, tlsOptions, tlsSettings } from './tls-settings.ts';

/** Options of every command that works on a vault. */
export const commonOptions = {
  'data-dir': { type: 'string', valueHint: 'DIR', description: 'the data directory of the vault' },
  config: {
    type: 'string',
    valueHint: 'FILE',
    description: 'the settings file (default: vault.yaml in the data directory)',
  },
  ...databaseOptions,
  ...masterKeyOptions,
} as const;

/** Options of `vault serve`. */
export const serveOptions = {
  'no-create': {
    type: 'boolean',
    description: 'refuse to start where no vault exists, instead of creating one',
  },
  listen: {
    type: 'string',
    valueHint: 'HOST:PORT',
    description: 'the address to listen on (default: 127.0.0.1:8080)',
  },
  'public-url': {
    type: 'string',
    valueHint: 'URL',
    description: 'the URL at which clients reach the vault (default: from the Host header)',
  },
  workers: {
    type: 'string',
    valueHint: 'N',
    description: 'ignored: the vault serves in one process',
  },
  ...clientOptions,
  ...backupOptions,
  ...auditOptions,
  ...deletionOptions,
  'acme-http-listen': {
    type: 'string',
    valueHint: 'HOST:PORT',
    description: 'also answer http-01 challenges on this address, such as 0.0.0.0:80 (default: off)',
  },
  'acme-tls-listen': {
    type: 'string',
    valueHint: 'HOST:PORT',
    description: 'answer tls-alpn-01 challenges on this address, such as 0.0.0.0:443 (default: off)',
  },
  resolver: {
    type: 'string',
    valueHint: 'IP[:PORT]',
    description: 'the DNS resolver to find the name servers of a zone (default: the system resolver)',
  },
  'acme-drafts': {
    type: 'boolean',
    description: 'allow challenge types that are still IETF drafts: dns-persist-01',
  },
  ...outboundOptions,
  ...acmeServerOptions,
  ...endpointOptions,
  ...tlsOptions,
  ...metricsOptions,
  ...oidcOptions,
  'insecure-http': { type: 'boolean', description: 'allow plain HTTP on addresses other than loopback' },
  ...administrationOptions,
  'log-level': {
    type: 'string',
    valueHint: 'LEVEL',
    values: logLevels,
    description: `the log level: ${logLevels.join(', ')} (default: info)`,
  },
} as const;

type Flags = Partial<Arguments<typeof commonOptions & typeof serveOptions>>;
export type SettingName = keyof typeof commonOptions | keyof typeof serveOptions;

export type Settings = MasterKeySettings &
  DatabaseSettings &
  MetricsSettings &
  AdministrationSettings & {
    readonly dataDir: string;
    /** The directory of systemd credentials. */
    readonly credentialsDir?: string | undefined;
    /** Refuse to create a vault where none exists. */
    readonly noCreate: boolean;
    readonly listen: ListenAddress;
    readonly publicUrl: string | undefined;
    /** Where the ignored setting `workers` of an older configuration stands; undefined if not set. */
    readonly workers: string | undefined;
    readonly clients: ClientSettings;
    readonly backups: BackupPlan | undefined;
    readonly audit: AuditSettings;
    /** How long deleted certificates are kept, in milliseconds. */
    readonly keepDeleted: number;
    /** How many versions of a certificate are kept once they have expired. */
    readonly keepVersions: number;
    readonly acmeHttpListen: ListenAddress | undefined;
    readonly acmeTlsListen: ListenAddress | undefined;
    /** `ip:port` */
    readonly resolver: string | undefined;
    readonly acmeDrafts: boolean;
    /** The addresses that the outbound guard allows; undefined if not set. */
    readonly allowOutbound: readonly AllowedOutbound[] | undefined;
    readonly acmeServer: AcmeServerSettings;
    readonly endpoints: EndpointSettings;
    /** The proxy variables of the environment. */
    readonly proxies: Environment;
    /** Undefined for plain HTTP. */
    readonly tls: TlsSettings | undefined;
    /** Undefined if people sign in by password only. */
    readonly oidc: OidcSettings | undefined;
    readonly insecureHttp: boolean;
    readonly logLevel: LogLevel;
    /** Environment variables with a value for HashiCorp's vault; the log of the server names them. */
    readonly ignoredVariables: readonly string[];
  };

const names = [...Object.keys(commonOptions), ...Object.keys(serveOptions)] as SettingName[];

/**
 * Reads the settings from flags, environment and settings file. Throws OperatorError that names the invalid setting.
 */
export async function readSettings(flags: Flags, environment: Environment): Promise<Settings> {
  const flag = (name: SettingName) => found(text(flags[name]), `--${name}`);
  const inEnvironment = (name: SettingName) => settingInEnvironment(name, environment);
  const given = (name: SettingName) => flag(name) ?? inEnvironment(name);
  const firstDataDir = given('data-dir')?.value ?? defaultDataDir(environment);
  const configPath = given('config')?.value;
  const file = await readSettingsFile(configPath ?? join(firstDataDir, 'vault.yaml'), {
    known: names.filter((name) => name !== 'config').map(key),
    dataDir: firstDataDir,
    mustExist: configPath !== undefined,
  });
  const inFile = (name: SettingName) => found(file.values.get(key(name)), `${key(name)} in ${file.path}`);
  const setting = (name: SettingName): Found | undefined => given(name) ?? inFile(name);
  const dataDir = resolve(setting('data-dir')?.value ?? firstDataDir);
  const url = publicUrl(setting('public-url'));
  const credentialsDir = environment.CREDENTIALS_DIRECTORY || undefined;
  return {
    dataDir,
    credentialsDir,
    ...masterKeySettings([flag, inEnvironment, inFile], dataDir, credentialsDir),
    ...databaseSettings(setting, environment),
    noCreate: truth(setting('no-create')),
    listen: listenAddress(setting('listen') ?? { value: '127.0.0.1:8080', from: 'the default' }),
    publicUrl: url,
    workers: setting('workers')?.from,
    clients: clientSettings(setting),
    backups: backupPlan(setting),
    audit: auditSettings(setting),
    keepDeleted: keepDeleted(setting),
    keepVersions: keepVersions(setting),
    acmeHttpListen: optional(setting('acme-http-listen'), listenAddress),
    acmeTlsListen: optional(setting('acme-tls-listen'), listenAddress),
    resolver: optional(setting('resolver'), resolverAddress),
    acmeDrafts: truth(setting('acme-drafts')),
    allowOutbound: outboundSettings(setting),
    acmeServer: acmeServerSettings(setting),
    endpoints: endpointSettings(setting),
    proxies: proxiesIn(environment),
    tls: tlsSettings(setting),
    ...metricsSettings(setting),
    oidc: oidcSettings(setting, url),
    insecureHttp: truth(setting('insecure-http')),
    ...administrationSettings(setting),
    logLevel: logLevel(setting('log-level')),
    ignoredVariables: flag('log-level') === undefined ? ignoredVariables(environment) : [],
  };
}

/** Whether the host is a loopback address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function found(value: string | undefined, from: string): Found | undefined {
  return value === undefined || value === '' ? undefined : { value, from };
}

function text(flag: string | boolean | undefined): string | undefined {
  return typeof flag === 'boolean' ? (flag ? 'true' : undefined) : flag;
}

function key(name: SettingName): string {
  return name.replaceAll('-', '_');
}

function optional<T>(setting: Found | undefined, read: (setting: Found) => T): T | undefined {
  return setting === undefined ? undefined : read(setting);
}

function proxiesIn(environment: Environment): Environment {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
  return Object.fromEntries(names.map((name) => [name, environment[name]]));
}
