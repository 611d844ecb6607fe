/** The error of a copy of the database. */
import { describeSystemError } from '../base/system-error.ts';

/** A copy could not be written. Unless a disk had an error (`unclear`), it is not the database's. */
export class CopyError extends Error {
  /** Whether the disk of the copy is full. */
  readonly isFull: boolean;
  /** Whether it may as well be the disk of the database: SQLite does not tell. */
  readonly isUnclear: boolean;

  constructor(cause: unknown, reason: 'full' | 'not writable' | 'unclear') {
    super(describeSystemError(cause), { cause });
    this.name = 'CopyError';
    this.isFull = reason === 'full';
    this.isUnclear = reason === 'unclear';
  }
}
