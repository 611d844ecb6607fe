/** Plain words for errors of the operating system, in place of Node's `ENOENT: no such file or directory, open 'x'`. */

const texts: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EAGAIN: 'resource temporarily unavailable',
  EDQUOT: 'disk quota exceeded',
  EEXIST: 'file exists',
  EIO: 'input/output error',
  EISDIR: 'is a directory',
  ELOOP: 'too many symbolic links',
  EMFILE: 'too many open files',
  ENAMETOOLONG: 'file name too long',
  ENFILE: 'too many open files in the system',
  ENOENT: 'no such file or directory',
  ENOMEM: 'out of memory',
  ENOSPC: 'no space left on device',
  ENOTDIR: 'not a directory',
  EPERM: 'operation not permitted',
  EPIPE: 'broken pipe',
  EROFS: 'read-only file system',
};

/** What went wrong, without error code, system call and path. Errors without a known code keep their message. */
export function systemErrorText(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const known = code !== undefined && Object.hasOwn(texts, code) ? texts[code] : undefined;
  if (known !== undefined) return known;
  // Node has no name for EDQUOT: 122 on Linux, 69 on macOS and the BSDs.
  if (/^Unknown system error -(122|69)$/.test(code ?? '')) return 'disk quota exceeded';
  return message;
}
