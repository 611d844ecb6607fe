/** The error of a copy of the database. */
import { describeSystemError } from '../base/system-error.ts';

/** A copy could not be written; the database itself is intact. */
export class CopyError extends Error {
  /** Whether the disk of the copy is full. */
  readonly isFull: boolean;

  constructor(cause: unknown, reason: 'full' | 'not writable') {
    super(describeSystemError(cause), { cause });
    this.name = 'CopyError';
    this.isFull = reason === 'full';
  }
}
