/** Passwords in a file as libpq reads it (.pgpass): a line `host:port:database:user:password` for each, `*` for any. */
import { readFile, stat } from 'node:fs/promises';
import { OperatorError } from '../../base/operator-error.ts';
import { quoted } from '../../base/paths/shell-word.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { type ConnectionUrl, type Host, isSocket } from './connection-url.ts';

/**
 * The password for this host: the URL's own, else the first that fits in the file; undefined if there is none. The file
 * is read each time, so that a new password needs no restart. Rejects with OperatorError if other users can read it.
 */
export async function passwordFor(url: ConnectionUrl, host: Host): Promise<string | undefined> {
  if (url.password !== undefined) return url.password.expose();
  const text = url.passFile === undefined ? undefined : await readPrivately(url.passFile);
  const line = text
    ?.split(/\r?\n/)
    .map(fieldsOf)
    .find((fields) => fits(fields, url, host));
  return line?.[4];
}

async function readPrivately(path: string): Promise<string | undefined> {
  try {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) {
      throw new OperatorError(`other users can read the passwords in ${path}`, {
        hint: `Fix: chmod 600 ${quoted(path)}`,
      });
    }
    return await readFile(path, 'utf8');
  } catch (error) {
    // Not having one is usual.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`cannot read ${path}: ${describeSystemError(error)}`, { cause: error });
  }
}

/** Fields of a line; `\:` and `\\` stand for the characters themselves. An empty list for comments. */
function fieldsOf(line: string): string[] {
  if (line.startsWith('#')) return [];
  const fields: string[] = [];
  let field = '';
  for (let at = 0; at < line.length; at += 1) {
    // Only the last field may have colons that are not escaped.
    if (line[at] === ':' && fields.length < 4) {
      fields.push(field);
      field = '';
      continue;
    }
    if (line[at] === '\\' && at + 1 < line.length) at += 1;
    field += line[at];
  }
  return [...fields, field];
}

function fits(fields: readonly string[], { database, user }: ConnectionUrl, { host, port }: Host): boolean {
  if (fields.length !== 5) return false;
  const names = isSocket(host) ? [host, 'localhost'] : [host];
  const wanted = [names, [String(port)], [database], [user]];
  return wanted.every((values, index) => fields[index] === '*' || values.includes(fields[index] ?? ''));
}
