/**
 * Problems of the database itself, in words for the operator. Commands print them; over HTTP they become `unavailable`,
 * because the client may succeed later and must not learn internals.
 */
import { OperatorError } from './operator-error.ts';

/** The database or the disk below it failed; retrying later may help. */
export class StorageError extends OperatorError {
  constructor(message: string, options: { readonly hint?: string; readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = 'StorageError';
  }
}
