/**
 * What can go wrong with the database itself, in words for whoever runs the vault. Commands print it; over HTTP it
 * becomes `unavailable`, because the caller may succeed later and must learn nothing about the inside.
 */
import { OperatorError } from './operator-error.ts';

/** The database, or the disk below it, is in trouble; trying again later may help. */
export class StorageError extends OperatorError {
  constructor(message: string, options: { readonly hint?: string; readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = 'StorageError';
  }
}
