/**
 * The one table of settings: from it come the flags, the environment variables, the keys of the settings file and the
 * defaults. A flag beats the environment, which beats the file, which beats the default.
 */

import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { homedir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { type LogLevel, logLevels } from '../../base/log.ts';
import { defaultSessionLimits, type SessionLimits } from '../../domain/access/sessions.ts';
import type { BackupPlan } from '../../domain/backup/backup-schedule.ts';
import type { AllowedOutbound } from '../../net/outbound-addresses.ts';
import type { Arguments } from '../terminal/arguments.ts';
import type { Environment } from '../terminal/terminal.ts';
import { type AuditSettings, auditOptions, auditSettings } from './audit-settings.ts';
import { backupOptions, backupPlan } from './backup-settings.ts';
import { type ClientSettings, clientOptions, clientSettings } from './client-settings.ts';
import { type MasterKeySettings, masterKeyOptions, masterKeySettings } from './master-key-settings.ts';
import { type MetricsSettings, metricsOptions, metricsSettings } from './metrics-settings.ts';
import { outboundOptions, outboundSettings } from './outbound-settings.ts';
import {
  type Found,
  type ListenAddress,
  listenAddress,
  logLevel,
  publicUrl,
  resolverAddress,
  sessionDuration,
  truth,
  workerCount,
} from './setting-values.ts';
import { readSettingsFile } from './settings-file.ts';
import { type TlsSettings, tlsOptions, tlsSettings } from './tls-settings.ts';

/** Options that every command takes, so that all of them find the same vault. */
export const commonOptions = {
  'data-dir': { type: 'string', valueHint: 'DIR', description: 'where the vault keeps its data' },
  config: {
    type: 'string',
    valueHint: 'FILE',
    description: 'the settings file (default: vault.yaml in the data directory)',
  },
  ...masterKeyOptions,
} as const;

/** Options of `vault serve` alone. */
export const serveOptions = {
  listen: {
    type: 'string',
    valueHint: 'HOST:PORT',
    description: 'where to listen (default: 127.0.0.1:8080)',
  },
  'public-url': {
    type: 'string',
    valueHint: 'URL',
    description: "where clients find the vault (default: from the request's host)",
  },
  workers: {
    type: 'string',
    valueHint: 'N',
    description: 'on how many processes to serve, as many as processors at most (default: 1)',
  },
  ...clientOptions,
  ...backupOptions,
  ...auditOptions,
  'acme-http-listen': {
    type: 'string',
    valueHint: 'HOST:PORT',
    description: 'where else to answer http-01 challenges, such as 0.0.0.0:80 (default: nowhere else)',
  },
  'acme-tls-listen': {
    type: 'string',
    valueHint: 'HOST:PORT',
    description: 'where to answer tls-alpn-01 challenges, such as 0.0.0.0:443 (default: nowhere)',
  },
  resolver: {
    type: 'string',
    valueHint: 'IP[:PORT]',
    description: "the resolver through which to find a zone's name servers (default: the system's)",
  },
  'acme-drafts': {
    type: 'boolean',
    description: 'allow challenge types that are still drafts: dns-persist-01',
  },
  ...outboundOptions,
  ...tlsOptions,
  ...metricsOptions,
  'insecure-http': { type: 'boolean', description: 'serve plain HTTP beyond loopback' },
  'session-idle': {
    type: 'string',
    valueHint: 'DURATION',
    description: 'how long people stay signed in without doing anything (default: 30m)',
  },
  'session-lifetime': {
    type: 'string',
    valueHint: 'DURATION',
    description: 'how long people stay signed in at most (default: 12h)',
  },
  'log-level': {
    type: 'string',
    valueHint: 'LEVEL',
    values: logLevels,
    description: `one of ${logLevels.join(', ')} (default: info)`,
  },
} as const;

type Flags = Partial<Arguments<typeof commonOptions & typeof serveOptions>>;
type SettingName = keyof typeof commonOptions | keyof typeof serveOptions;

export type Settings = MasterKeySettings &
  MetricsSettings & {
    readonly dataDir: string;
    /** Where the service manager puts secrets for this process. */
    readonly credentialsDir?: string | undefined;
    readonly listen: ListenAddress;
    readonly publicUrl: string | undefined;
    readonly workers: number;
    readonly clients: ClientSettings;
    readonly backups: BackupPlan | undefined;
    readonly audit: AuditSettings;
    readonly acmeHttpListen: ListenAddress | undefined;
    readonly acmeTlsListen: ListenAddress | undefined;
    /** `ip:port` */
    readonly resolver: string | undefined;
    readonly acmeDrafts: boolean;
    /** What the guard lets through, or undefined where nothing says. */
    readonly allowOutbound: readonly AllowedOutbound[] | undefined;
    /** What the environment says about proxies. */
    readonly proxies: Environment;
    /** Undefined for plain HTTP. */
    readonly tls: TlsSettings | undefined;
    readonly insecureHttp: boolean;
    readonly sessionLimits: SessionLimits;
    readonly logLevel: LogLevel;
  };

const names = [...Object.keys(commonOptions), ...Object.keys(serveOptions)] as SettingName[];

/** Settings for these flags and this environment. Throws OperatorError that names the setting that is wrong. */
export async function readSettings(flags: Flags, environment: Environment): Promise<Settings> {
  const flag = (name: SettingName) => found(text(flags[name]), `--${name}`);
  const inEnvironment = (name: SettingName) => found(environment[variable(name)], variable(name));
  const given = (name: SettingName) => flag(name) ?? inEnvironment(name);
  const firstDataDir = given('data-dir')?.value ?? defaultDataDir(environment);
  const configPath = given('config')?.value;
  const file = await readSettingsFile(configPath ?? join(firstDataDir, 'vault.yaml'), {
    known: names.filter((name) => name !== 'config').map(key),
    mustExist: configPath !== undefined,
  });
  const inFile = (name: SettingName) => found(file.values.get(key(name)), `${key(name)} in ${file.path}`);
  const setting = (name: SettingName): Found | undefined => given(name) ?? inFile(name);
  const dataDir = resolve(setting('data-dir')?.value ?? firstDataDir);
  const credentialsDir = environment.CREDENTIALS_DIRECTORY || undefined;
  return {
    dataDir,
    credentialsDir,
    ...masterKeySettings([flag, inEnvironment, inFile], dataDir, credentialsDir),
    listen: listenAddress(setting('listen') ?? { value: '127.0.0.1:8080', from: 'the default' }),
    publicUrl: publicUrl(setting('public-url')),
    workers: workerCount(setting('workers')),
    clients: clientSettings(setting),
    backups: backupPlan(setting),
    audit: auditSettings(setting),
    acmeHttpListen: optional(setting('acme-http-listen'), listenAddress),
    acmeTlsListen: optional(setting('acme-tls-listen'), listenAddress),
    resolver: optional(setting('resolver'), resolverAddress),
    acmeDrafts: truth(setting('acme-drafts')),
    allowOutbound: outboundSettings(setting),
    proxies: proxiesIn(environment),
    tls: tlsSettings(setting),
    ...metricsSettings(setting),
    insecureHttp: truth(setting('insecure-http')),
    sessionLimits: {
      idle: sessionDuration(setting('session-idle'), defaultSessionLimits.idle),
      lifetime: sessionDuration(setting('session-lifetime'), defaultSessionLimits.lifetime),
    },
    logLevel: logLevel(setting('log-level')),
  };
}

/** Whether only programs on this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function found(value: string | undefined, from: string): Found | undefined {
  return value === undefined || value === '' ? undefined : { value, from };
}

function text(flag: string | boolean | undefined): string | undefined {
  return typeof flag === 'boolean' ? (flag ? 'true' : undefined) : flag;
}

function variable(name: SettingName): string {
  return `VAULT_${name.replaceAll('-', '_').toUpperCase()}`;
}

function key(name: SettingName): string {
  return name.replaceAll('-', '_');
}

/** Where the unit of `vault systemd-unit` keeps its data. */
const serviceDataDir = '/var/lib/vault';

/** The user of the service needs no `--data-dir`: that user's commands find the service's vault once it exists. */
function defaultDataDir(environment: Environment): string {
  if (environment.STATE_DIRECTORY) return environment.STATE_DIRECTORY.split(':')[0] ?? '';
  const { uid } = userInfo();
  if (uid === 0 || ownerOf(join(serviceDataDir, 'vault.db')) === uid) return serviceDataDir;
  return join(environment.XDG_DATA_HOME || join(environment.HOME || homedir(), '.local', 'share'), 'vault');
}

function ownerOf(path: string): number | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.uid;
  } catch {
    // Another user's directory.
    return undefined;
  }
}

function optional<T>(setting: Found | undefined, read: (setting: Found) => T): T | undefined {
  return setting === undefined ? undefined : read(setting);
}

function proxiesIn(environment: Environment): Environment {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
  return Object.fromEntries(names.map((name) => [name, environment[name]]));
}
