/** The only error of this folder: why a request to a CA failed, in a sentence for people. */
import { OperatorError } from '../base/operator-error.ts';
import { shortened } from '../base/printable-text.ts';
import type { AcmeProblem } from './acme-types.ts';

/**
 * - `problem`: the CA rejected the request with a problem document (RFC 8555 §6.7).
 * - `network`: the CA is unreachable, its certificate is not trusted, or the connection was closed.
 * - `protocol`: the response violates RFC 8555 or is not accepted by the vault.
 * - `timeout`: the CA did not respond in time.
 * - `aborted`: the caller's signal was aborted.
 */
export type AcmeErrorKind = 'problem' | 'network' | 'protocol' | 'timeout' | 'aborted';

export type AcmeErrorOptions = {
  readonly problem?: AcmeProblem | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly status?: number | undefined;
  readonly cause?: unknown;
};

const maxMessageLength = 2000;

export class AcmeError extends OperatorError {
  readonly kind: AcmeErrorKind;
  /** The problem document of the CA, with `problem`. */
  readonly problem: AcmeProblem | undefined;
  /** How long the CA asked to wait, from now: its Retry-After with any status. */
  readonly retryAfterMs: number | undefined;
  /** The HTTP status of the response, if there was one. */
  readonly status: number | undefined;

  /** Control characters are removed from the message, and it is cut to 2000 characters. */
  constructor(kind: AcmeErrorKind, message: string, options: AcmeErrorOptions = {}) {
    super(shortened(message, maxMessageLength), { cause: options.cause });
    this.name = 'AcmeError';
    this.kind = kind;
    this.problem = options.problem;
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
  }

  /** The last part of the problem type, such as `rateLimited` (RFC 8555 §6.7); empty if there is none. */
  get type(): string {
    return /^urn:.*:([^:]+)$/.exec(this.problem?.type ?? '')?.[1] ?? '';
  }
}
