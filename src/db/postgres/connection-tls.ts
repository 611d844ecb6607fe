/** How connections to PostgreSQL are encrypted and whom they trust, from the mode that libpq's `sslmode` names. */
import { readFile, stat } from 'node:fs/promises';
import type { ConnectionOptions } from 'node:tls';
import { OperatorError } from '../../base/operator-error.ts';
import { quoted } from '../../base/paths/shell-word.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { ConnectionUrl, SslMode } from './connection-url.ts';

/** TLS, or none, for one attempt to connect. */
export type Encryption = ConnectionOptions | false;

/**
 * What to try, in this order, while the server refuses how the one before was encrypted. Files are read each time, so
 * that renewed certificates need no restart. Rejects with OperatorError if a file cannot be read.
 */
export async function encryptionsFor(url: ConnectionUrl, mode: SslMode): Promise<readonly Encryption[]> {
  if (mode === 'disable') return [false];
  const tls = await tlsOptions(url, mode);
  if (mode === 'prefer') return [tls, false];
  return mode === 'allow' ? [false, tls] : [tls];
}

async function tlsOptions(url: ConnectionUrl, mode: SslMode): Promise<ConnectionOptions> {
  const verifies = mode === 'verify-ca' || mode === 'verify-full';
  const [ca, cert, key] = await Promise.all([
    verifies ? read(url.sslRootCert, 'CA certificates') : undefined,
    read(url.sslCert, 'certificate'),
    readKey(url.sslKey),
  ]);
  return {
    minVersion: 'TLSv1.2',
    rejectUnauthorized: verifies,
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    // Any name will do, as libpq says for this mode.
    ...(mode === 'verify-ca' && { checkServerIdentity: () => undefined }),
  };
}

/** As libpq wants it: for its owner alone, or root's and readable by a group. */
async function readKey(path: string | undefined): Promise<Buffer | undefined> {
  const key = await read(path, 'key');
  if (path === undefined) return undefined;
  const { mode, uid } = await stat(path);
  if ((mode & (uid === 0 ? 0o037 : 0o077)) !== 0) {
    throw new OperatorError(`other users can access the key for PostgreSQL in ${path}`, {
      hint: `Fix: chmod 600 ${quoted(path)}`,
    });
  }
  return key;
}

async function read(path: string | undefined, what: string): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path);
  } catch (error) {
    throw new OperatorError(
      `cannot read the ${what} for PostgreSQL in ${path}: ${describeSystemError(error)}`,
      {
        hint: 'Check the path in the database URL, and who may read the file.',
        cause: error,
      },
    );
  }
}
