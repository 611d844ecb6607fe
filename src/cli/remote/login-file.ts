/**
 * The API keys and sessions that `vault login` stores for servers, in a file of the user that others cannot read, with
 * how each server is trusted. A key comes from the file that CERTVAULT_TOKEN_FILE names, else from there; never from an
 * argument, which every user of the machine sees.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { refuseExposedKeyFile } from '../terminal/private-files.ts';
import { writePrivateFiles } from '../terminal/private-output.ts';
import { secretText } from '../terminal/secret-text.ts';
import type { Environment, Terminal } from '../terminal/terminal.ts';

const fileVariable = 'CERTVAULT_TOKEN_FILE';

/** Larger ones are not ours. */
const maxSize = 1024 * 1024;

/** How to trust a server: by the PEM certificates of CAs, by the pin of its public key, or by the public CAs. */
export type ServerTrust = { readonly ca?: string | undefined; readonly pin?: string | undefined };

/** `key` is an API key, or the token of a session. */
export type Login = ServerTrust & { readonly key: Secret<string> };

type Stored = ServerTrust & { readonly key: string };
type Logins = { readonly servers: Readonly<Record<string, Stored>> };

/** `certificate-vault/login.json` in the user's configuration directory. */
export function loginPath({ XDG_CONFIG_HOME, HOME }: Environment): string {
  const base = XDG_CONFIG_HOME?.startsWith('/') ? XDG_CONFIG_HOME : join(HOME || homedir(), '.config');
  return join(base, 'certificate-vault', 'login.json');
}

/** The key for this server. Throws OperatorError without one, and if others can read the file. */
export function loginFor(environment: Environment, url: string): Login {
  const named = environment[fileVariable];
  if (named !== undefined && named !== '') {
    refuseExposedKeyFile(named);
    return { key: readKey(named) };
  }
  const stored = readLogins(loginPath(environment)).servers[url];
  if (stored !== undefined) return { ...stored, key: new Secret(stored.key) };
  throw new OperatorError(`no API key for ${url}`, {
    hint: `Try: vault login ${url}\nOr set ${fileVariable} to the path of a file with one.`,
  });
}

/** Stores the key for this server, in place of an earlier one. Returns the path. */
export function storeLogin({ environment, world }: Terminal, url: string, { key, ca, pin }: Login): string {
  const path = loginPath(environment);
  const { servers } = readLogins(path);
  writeLogins(world, path, { servers: { ...servers, [url]: { key: key.expose(), ca, pin } } });
  return path;
}

/** Forgets the key for this server, and returns it; undefined if there was none. */
export function forgetLogin({ environment, world }: Terminal, url: string): Login | undefined {
  const path = loginPath(environment);
  const { [url]: known, ...servers } = readLogins(path).servers;
  if (known === undefined) return undefined;
  writeLogins(world, path, { servers });
  return { ...known, key: new Secret(known.key) };
}

function readKey(path: string): Secret<string> {
  let content: Buffer;
  try {
    content = readFileSync(path);
  } catch (error) {
    throw new OperatorError(`${fileVariable}: cannot read ${path}: ${describeSystemError(error)}`, {
      cause: error,
    });
  }
  return secretText(content);
}

function readLogins(path: string): Logins {
  if (!existsSync(path)) return { servers: {} };
  refuseExposedKeyFile(path);
  const unreadable = (what: string, cause?: unknown) =>
    new OperatorError(`${path}: ${what}`, { hint: 'Delete the file, and run "vault login" again.', cause });
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    throw unreadable(`cannot read: ${describeSystemError(error)}`, error);
  }
  try {
    if (fstatSync(file).size > maxSize) throw unreadable('too large');
    const { servers = {} } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Logins>;
    return { servers: Object.assign(Object.create(null), servers) };
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw unreadable('not a file of "vault login"', error);
  } finally {
    closeSync(file);
  }
}

/** In place of the old file, which stays whole until then. A symbolic link is replaced, not followed. */
function writeLogins(world: Terminal['world'], path: string, logins: Logins): void {
  const content = `${JSON.stringify(logins, undefined, 2)}\n`;
  writePrivateFiles(world, dirname(path), [{ name: 'login.json', path, content }], 'replace');
}
