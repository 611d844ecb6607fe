/**
 * Errors of the operating system, of TLS, of SQLite and of Node in plain words, for log lines and messages: their own
 * texts never reach a person.
 */

const words: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'certificate has expired',
  CERT_NOT_YET_VALID: 'certificate is not valid yet',
  CERT_REVOKED: 'certificate was revoked',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed certificate',
  E2BIG: 'argument list too long',
  EACCES: 'permission denied',
  EADDRINUSE: 'address already in use',
  EADDRNOTAVAIL: 'this host does not have the address',
  EAGAIN: 'resource temporarily unavailable',
  EAI_AGAIN: 'DNS lookup failed temporarily',
  EBUSY: 'device or file busy',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EDQUOT: 'disk quota exceeded',
  EEXIST: 'file already exists',
  EFBIG: 'file too large',
  EHOSTUNREACH: 'no route to host',
  EIO: 'input/output error',
  EISDIR: 'is a directory',
  ELOOP: 'too many symbolic links',
  EMFILE: 'too many open files',
  ENAMETOOLONG: 'file name too long',
  ENETUNREACH: 'network unreachable',
  ENFILE: 'too many open files on this host',
  ENOENT: 'no such file or directory',
  ENOMEM: 'out of memory',
  ENOSPC: 'no space left on device',
  ENOTDIR: 'not a directory',
  ENOTEMPTY: 'directory not empty',
  ENOTFOUND: 'host name not found in DNS',
  EPERM: 'operation not permitted',
  EPIPE: 'connection closed',
  EPROTO: 'TLS protocol error',
  EROFS: 'read-only file system',
  ETIMEDOUT: 'connection timed out',
  ETXTBSY: 'file is being written',
  SELF_SIGNED_CERT_IN_CHAIN: 'certificate issued by an unknown CA',
  UNABLE_TO_GET_ISSUER_CERT: 'certificate issued by an unknown CA',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'certificate issued by an unknown CA',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'certificate issued by an unknown CA',
  SQLITE_AUTH: 'permission denied',
  SQLITE_BUSY: 'database locked by another process',
  SQLITE_CANTOPEN: 'cannot open the database file',
  SQLITE_CORRUPT: 'damaged database',
  SQLITE_FULL: 'no space left on device',
  SQLITE_IOERR: 'input/output error',
  SQLITE_LOCKED: 'database locked by another process',
  SQLITE_NOTADB: 'file is not a database',
  SQLITE_PERM: 'permission denied',
  SQLITE_READONLY: 'database is read-only',
  // Node has no name for EDQUOT: these are its numbers on Linux, and on macOS and the BSDs.
  'Unknown system error -122': 'disk quota exceeded',
  'Unknown system error -69': 'disk quota exceeded',
};

/** The words for the error's code, such as `permission denied`; the error's own message if the code has none. */
export function describeSystemError(error: unknown): string {
  const { code, message, reason, cert } = (error ?? {}) as SystemError;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return wrongName(cert?.subjectaltname);
  if (typeof code === 'string') {
    // SQLite appends details, as in SQLITE_IOERR_WRITE.
    const [known = code] = /^SQLITE_[A-Z]+/.exec(code) ?? [];
    if (Object.hasOwn(words, known)) return words[known] ?? code;
    // OpenSSL's message names source files; its reason is a short text such as `wrong version number`.
    if (code.startsWith('ERR_SSL_') && typeof reason === 'string') return `TLS error: ${reason}`;
    if (code.startsWith('ERR_OSSL_') && typeof reason === 'string') return reason;
  }
  return typeof message === 'string' ? ownWords(message, error as SystemError) : String(error);
}

/**
 * Why a connection to `address` (host and port) failed. A host with several addresses fails with one error for each and
 * no message of its own.
 */
export function describeConnectError(error: unknown, address: string): string {
  if (error instanceof AggregateError) {
    return [...new Set(error.errors.map((one) => describeConnectError(one, address)))].join(', ');
  }
  const { address: tried, port } = (error ?? {}) as { readonly address?: string; readonly port?: number };
  const at = tried === undefined || `${tried}:${port}` === address ? '' : ` (${tried}:${port})`;
  return describeSystemError(error) + at;
}

/** Like `describeSystemError`, with the file that the operation failed on: `/etc/vault.yaml: permission denied`. */
export function describeFileError(error: unknown): string {
  const { path, dest } = (error ?? {}) as SystemError;
  const what = describeSystemError(error);
  if (typeof path !== 'string') return what;
  return typeof dest === 'string' ? `${path} to ${dest}: ${what}` : `${path}: ${what}`;
}

/** Whether the error means that the disk is full or a quota exceeded. */
export function isNoSpaceError(error: unknown): boolean {
  const { code } = (error ?? {}) as SystemError;
  return typeof code === 'string' && noSpace.has(code);
}

const noSpace = new Set([
  ...['ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL'],
  ...['Unknown system error -122', 'Unknown system error -69'],
]);

type SystemError = {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly reason?: unknown;
  readonly syscall?: unknown;
  readonly path?: unknown;
  readonly dest?: unknown;
  readonly cert?: { readonly subjectaltname?: string };
};

function wrongName(names: string | undefined): string {
  return names === undefined
    ? 'certificate has no names'
    : `certificate is for ${names.replaceAll('DNS:', '')}`;
}

/** Node writes `CODE: text, open 'path'`; only the text is for people. */
function ownWords(message: string, { code, syscall }: SystemError): string {
  const text = message.replace(/^Parse Error: /, '');
  const isNode = typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) && text.startsWith(`${code}: `);
  if (!isNode) return text;
  const end = typeof syscall === 'string' ? text.indexOf(`, ${syscall}`) : -1;
  return text.slice(`${code}: `.length, end === -1 ? undefined : end);
}
