/**
 * Errors of the operating system that can occur anywhere: no file descriptors, no space, a failing disk. They are not bugs to
 * report, so each gets a hint that says how to fix it.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError, isNoSpaceError } from '../../base/system-error.ts';

const descriptors = 'Raise the limit of open files: "ulimit -n", or LimitNOFILE= in the systemd unit.';
const space = 'Free disk space, then try again.';

const hints: Readonly<Record<string, string>> = {
  EMFILE: descriptors,
  ENFILE:
    'All programs together have too many files open. Raise the sysctl fs.file-max, or stop some programs.',
  EIO: 'Check the disk and the kernel log, then try again.',
  EROFS: 'The disk is mounted read-only. Mount it read-write, then try again.',
  ENOMEM: 'Give the vault more memory, or stop other programs.',
};

/** The error for the operator if it comes from the operating system; otherwise undefined. */
export function machineTrouble(error: unknown): OperatorError | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const known = typeof code === 'string' && Object.hasOwn(hints, code) ? hints[code] : undefined;
  const hint = isNoSpaceError(error) ? space : known;
  if (hint === undefined) return undefined;
  return new OperatorError(`system error: ${describeSystemError(error)}`, { hint, cause: error });
}
