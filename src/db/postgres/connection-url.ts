/**
 * Where PostgreSQL is and how to connect, from a URL and the environment variables that libpq reads too. Beyond this
 * machine the server must prove its identity, unless the URL itself says otherwise.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import { isLoopbackHost } from '../../base/secure-url.ts';
import { type UrlParts, urlParts } from './url-parts.ts';

/** A server: a name, an address, or the absolute path of a folder with its unix socket. */
export type Host = { readonly host: string; readonly port: number };

const modes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

/** As libpq has them; only the last two verify the server. */
export type SslMode = (typeof modes)[number];

export type ConnectionUrl = {
  /** At least one; the one that takes writes is used. */
  readonly hosts: readonly Host[];
  readonly user: string;
  readonly database: string;
  /** The one that stands in the URL or in PGPASSWORD. */
  readonly password: Secret<string> | undefined;
  /** A file in the format of .pgpass, for a password that stands nowhere else. */
  readonly passFile: string | undefined;
  /** What was said; undefined for the default, which depends on the host: `sslModeFor`. */
  readonly sslMode: SslMode | undefined;
  /** A file with certificates of CAs; undefined for those that the system trusts. */
  readonly sslRootCert: string | undefined;
  /** Files with the client's certificate and key. */
  readonly sslCert: string | undefined;
  readonly sslKey: string | undefined;
  readonly applicationName: string;
  readonly connectTimeoutMs: number;
  /** The schema with the vault's tables. */
  readonly schema: string;
};

/** The environment's variables, and the user's home directory where there is one. */
export type ConnectionSurroundings = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home?: string | undefined;
};

const known = [
  ...['host', 'port', 'user', 'password', 'dbname', 'schema', 'application_name', 'connect_timeout'],
  ...['target_session_attrs', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'passfile'],
];

/** Where Debian, Fedora and the official images have it. */
const socketFolder = '/var/run/postgresql';
const writable = ['any', 'read-write', 'primary'];
const defaultTimeoutSeconds = 5;
const maxTimeoutSeconds = 600;

/** Throws OperatorError, which never contains the password. */
export function parseConnectionUrl(text: string, surroundings: ConnectionSurroundings): ConnectionUrl {
  const { environment, home } = surroundings;
  const parts = urlParts(text);
  const { parameters } = parts;
  for (const name of parameters.keys()) {
    if (!known.includes(name)) {
      throw refused(`has the unknown parameter ${name}`, `Known parameters: ${known.join(', ')}.`);
    }
  }
  requireWritable(parameters.get('target_session_attrs'));
  const hosts = parts.hosts.map(hostOf);
  const user = parts.user ?? '';
  if (user === '') throw refused('names no user', 'Write postgres://USER@HOST/DATABASE.');
  const password = parts.password ?? environment.PGPASSWORD;
  const sslRootCert = parameters.get('sslrootcert') ?? nonEmpty(environment.PGSSLROOTCERT);
  const url: ConnectionUrl = {
    hosts,
    user,
    database: parts.database ?? user,
    password: password === undefined || password === '' ? undefined : new Secret(password),
    passFile:
      parameters.get('passfile') ??
      nonEmpty(environment.PGPASSFILE) ??
      (home === undefined ? undefined : `${home}/.pgpass`),
    sslMode: sslModeOf(parts, hosts, environment.PGSSLMODE, sslRootCert),
    sslRootCert: sslRootCert === 'system' ? undefined : sslRootCert,
    sslCert: parameters.get('sslcert') ?? nonEmpty(environment.PGSSLCERT),
    sslKey: parameters.get('sslkey') ?? nonEmpty(environment.PGSSLKEY),
    applicationName: parameters.get('application_name') ?? 'vault',
    connectTimeoutMs: timeoutOf(parameters.get('connect_timeout')) * 1000,
    schema: schemaOf(parameters.get('schema') ?? 'public'),
  };
  if ((url.sslCert === undefined) !== (url.sslKey === undefined)) {
    throw refused('has only one of sslcert and sslkey', 'A client certificate needs both.');
  }
  return url;
}

/** The URL for people: without the password and without parameters. */
export function displayUrl({ hosts, user, database }: ConnectionUrl): string {
  const list = hosts.map(displayHost).join(',');
  return `postgres://${encodeURIComponent(user)}@${list}/${encodeURIComponent(database)}`;
}

/** A host for people, and for URLs: without the usual port. */
export function displayHost({ host, port }: Host): string {
  const name = host.includes(':') ? `[${host}]` : encodeURIComponent(host);
  return port === 5432 ? name : `${name}:${port}`;
}

/** A host for messages and logs. */
export function placeOf(host: Host): string {
  return isSocket(host.host) ? host.host : displayHost(host);
}

/** Whether it is reached by a unix socket, which never has TLS. */
export function isSocket(host: string): boolean {
  return host.startsWith('/');
}

/** How to connect to one of the hosts. */
export function sslModeFor({ sslMode }: Pick<ConnectionUrl, 'sslMode'>, { host }: Host): SslMode {
  if (isSocket(host)) return 'disable';
  return sslMode ?? (isLoopbackHost(host) ? 'prefer' : 'verify-full');
}

function hostOf({ host, port }: Host): Host {
  if (host === '') return { host: socketFolder, port };
  const isPath = host.startsWith('/');
  if (!isPath && !/^[\w.:%-]+$/.test(host)) throw refused('has an invalid host name');
  return { host, port };
}

function requireWritable(attributes = 'any'): void {
  if (writable.includes(attributes)) return;
  throw refused(
    'has an unusable target_session_attrs',
    `The vault writes: leave it out, or choose one of ${writable.join(', ')}.`,
  );
}

/** The environment may ask for more than the default, but not for less: it may be meant for other programs. */
function sslModeOf(
  { parameters }: UrlParts,
  hosts: readonly Host[],
  fromEnvironment: string | undefined,
  rootCert: string | undefined,
): SslMode | undefined {
  const written = parameters.get('sslmode');
  const mode = sslMode(written, 'sslmode') ?? sslMode(nonEmpty(fromEnvironment), 'PGSSLMODE');
  const isVerified = mode === undefined || mode.startsWith('verify-');
  const isLocal = hosts.every(({ host }) => isSocket(host) || isLoopbackHost(host));
  if (written === undefined && !isVerified && !isLocal) {
    throw new OperatorError(`PGSSLMODE=${mode} would not verify the PostgreSQL server`, {
      hint: `Unset PGSSLMODE, or write ?sslmode=${mode} into the URL if an attacker on the network is no concern.`,
    });
  }
  if (rootCert === 'system' && mode !== undefined && mode !== 'verify-full') {
    throw refused('has sslrootcert=system with a weak sslmode', 'Use sslmode=verify-full.');
  }
  // As in libpq: a CA is named to be checked.
  return mode === 'require' && rootCert !== undefined ? 'verify-ca' : mode;
}

function sslMode(text: string | undefined, name: string): SslMode | undefined {
  if (text === undefined) return undefined;
  const mode = modes.find((one) => one === text);
  if (mode !== undefined) return mode;
  throw new OperatorError(`unknown ${name} for PostgreSQL`, { hint: `Choose one of ${modes.join(', ')}.` });
}

function timeoutOf(text: string | undefined): number {
  if (text === undefined) return defaultTimeoutSeconds;
  const seconds = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (seconds >= 1 && seconds <= maxTimeoutSeconds) return seconds;
  throw refused(`has a connect_timeout that is not a number of seconds from 1 to ${maxTimeoutSeconds}`);
}

/** Needs no quotes in SQL, and is not one of PostgreSQL's own. */
function schemaOf(name: string): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(name) && !name.startsWith('pg_') && name !== 'information_schema') {
    return name;
  }
  throw refused(
    'has an invalid schema',
    'Use lower-case letters, digits and "_", without "pg_" at the start.',
  );
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function refused(what: string, hint?: string): OperatorError {
  return new OperatorError(`the database URL ${what}`, hint === undefined ? {} : { hint });
}
