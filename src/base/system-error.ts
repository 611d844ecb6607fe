/** Errors of the operating system in plain words, for log lines and messages: Node's own text never reaches a person. */

const words: Readonly<Record<string, string>> = {
  E2BIG: 'argument list too long',
  EACCES: 'permission denied',
  EADDRINUSE: 'address already in use',
  EADDRNOTAVAIL: 'this host does not have the address',
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
  EROFS: 'read-only file system',
  ETIMEDOUT: 'connection timed out',
  ETXTBSY: 'file is being written',
  // Node has no name for EDQUOT: these are its numbers on Linux, and on macOS and the BSDs.
  'Unknown system error -122': 'disk quota exceeded',
  'Unknown system error -69': 'disk quota exceeded',
};

/** The words for the error's code, such as `permission denied`; the error's own message if the code has none. */
export function describeSystemError(error: unknown): string {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (typeof code === 'string' && Object.hasOwn(words, code)) return words[code] ?? code;
  return typeof message === 'string' ? message : String(error);
}
