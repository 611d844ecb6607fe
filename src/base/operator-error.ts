/** The errors of operators. */
import type { InputError } from './problem.ts';

/**
 * A problem in the environment of the vault (files, settings, the database, a port), reported to the operator who runs
 * the command. It never reaches an HTTP client: there it counts as a bug and is shown as `internal`.
 */
export class OperatorError extends Error {
  /** A sentence that says what to do. */
  readonly hint: string | undefined;
  /** The rejected members of a request body, if the operator sent one; the message has them all. */
  readonly errors: readonly InputError[];

  constructor(
    message: string,
    options: {
      readonly hint?: string;
      readonly errors?: readonly InputError[];
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'OperatorError';
    this.hint = options.hint;
    this.errors = options.errors ?? [];
  }
}
