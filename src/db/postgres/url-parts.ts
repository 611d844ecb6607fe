/**
 * The grammar of PostgreSQL's connection URLs, as libpq has it: several hosts, percent-encoding, parameters that stand
 * for parts. `URL` cannot read them. No message repeats what stands in the URL: it may be a part of the password.
 */
import { OperatorError } from '../../base/operator-error.ts';

/** What stands in a URL, decoded; hosts as written in order, with an empty name where there is none. */
export type UrlParts = {
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly database: string | undefined;
  /** All others, by name. */
  readonly parameters: ReadonlyMap<string, string>;
};

const scheme = /^postgres(?:ql)?:\/\//i;
const defaultPort = 5432;
const encoding =
  'Percent-encode special characters of the password: "@" is %40, "/" is %2F, "?" is %3F, "%" is %25.';

/** Whether the text claims to be such a URL. */
export function isPostgresUrl(text: string): boolean {
  return scheme.test(text);
}

/** Throws OperatorError if the text is no such URL. */
export function urlParts(text: string): UrlParts {
  if (!isPostgresUrl(text)) throw refused('does not begin with postgres://');
  const rest = text.replace(scheme, '');
  const [place, query] = split(rest, '?');
  const [authority, path] = split(place, '/');
  const [credentials, hostList] = authority.includes('@') ? split(authority, '@') : ['', authority];
  if ((hostList ?? '').includes('@') || /[/@]/.test(path ?? '')) {
    throw refused('has an unexpected "@" or "/"', encoding);
  }
  const [user, password] = split(credentials, ':');
  const all = parametersOf(query ?? '');
  const take = (name: string): string | undefined => {
    const value = all.get(name);
    all.delete(name);
    return value;
  };
  const hosts = withList(hostsOf(hostList ?? ''), take('host'), take('port'));
  const parts = {
    hosts,
    user: take('user') ?? (decoded(user) || undefined),
    password: take('password') ?? (password === undefined ? undefined : decoded(password)),
    database: take('dbname') ?? (decoded(path ?? '') || undefined),
  };
  return { ...parts, parameters: all };
}

/** The text before the first `separator`, and what follows it. */
function split(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function hostsOf(list: string): { host: string; port: number }[] {
  return list.split(',').map((one) => {
    const [, address, v6Port] = /^\[([^\]]*)\](?::(.*))?$/.exec(one) ?? [];
    if (address !== undefined) return { host: decoded(address), port: portOf(v6Port) };
    const [host, port] = split(one, ':');
    return { host: decoded(host), port: portOf(port) };
  });
}

/** The parameters `host` and `port` replace what stands before; one port counts for all hosts. */
function withList(
  written: readonly { host: string; port: number }[],
  hostList: string | undefined,
  portList: string | undefined,
): { host: string; port: number }[] {
  const names = hostList?.split(',') ?? written.map(({ host }) => host);
  const ports = portList?.split(',').map(portOf) ?? written.map(({ port }) => port);
  if (ports.length !== 1 && ports.length !== names.length) {
    throw refused(`names ${names.length} hosts and ${ports.length} ports`);
  }
  return names.map((host, index) => ({ host, port: ports[index] ?? ports[0] ?? defaultPort }));
}

function portOf(text: string | undefined): number {
  if (text === undefined || text === '') return defaultPort;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw refused('has a port that is not a number from 1 to 65535', encoding);
  return port;
}

function parametersOf(query: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const one of query.split('&').filter(Boolean)) {
    const [name, value] = split(one, '=');
    if (value === undefined) throw refused('has a parameter without "="', encoding);
    const decodedName = decoded(name);
    if (!/^[a-z_]{1,40}$/.test(decodedName)) throw refused('has a parameter without a name', encoding);
    if (parameters.has(decodedName)) throw refused(`has the parameter ${decodedName} twice`);
    parameters.set(decodedName, decoded(value));
  }
  return parameters;
}

function decoded(text: string): string {
  let value: string;
  try {
    value = decodeURIComponent(text);
  } catch {
    throw refused('has a "%" that begins no character', encoding);
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these end a value early in the protocol.
  if (/[\u0000-\u001f\u007f]/.test(value)) throw refused('has a control character');
  return value;
}

function refused(what: string, hint?: string): OperatorError {
  const example = 'An example: postgres://vault@db.example.com/vault?sslrootcert=/etc/ssl/db-ca.crt';
  return new OperatorError(`the database URL ${what}`, { hint: hint ?? example });
}
