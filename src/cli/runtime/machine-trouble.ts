/**
 * What the machine itself refuses, wherever in the vault it strikes: no descriptors, no space, a disk that fails. That is no
 * bug to report, but something to mend, and the sentence says what.
 */
import { isNoSpaceError, wordsOf } from '../../base/full-disk.ts';
import { OperatorError } from '../../base/operator-error.ts';

const descriptors = 'Let it have more files open: "ulimit -n", or LimitNOFILE= of the systemd unit.';
const space = 'Free some space, and try again.';

const hints: Readonly<Record<string, string>> = {
  EMFILE: descriptors,
  ENFILE:
    'All programs together have too many files open; raise the sysctl fs.file-max, or end some of them.',
  EIO: 'Look at the disk and the kernel log, and try again.',
  EROFS: 'The disk is mounted read-only; mount it for writing, and try again.',
  ENOMEM: 'Let it have more memory, or end other programs.',
};

/** The error for whoever runs the vault, where it comes from the machine; undefined where it does not. */
export function machineTrouble(error: unknown): OperatorError | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const known = typeof code === 'string' && Object.hasOwn(hints, code) ? hints[code] : undefined;
  const hint = isNoSpaceError(error) ? space : known;
  if (hint === undefined) return undefined;
  return new OperatorError(`the machine does not let it go on: ${wordsOf(error)}`, { hint, cause: error });
}
