/** The one error of this folder: why a CA did not do what it was asked, in a sentence for people. */
import { OperatorError } from '../base/operator-error.ts';
import { shortened } from '../base/printable-text.ts';
import type { AcmeProblem } from './acme-types.ts';

/**
 * - `problem`: the CA refused, and said why in a problem document (RFC 8555 §6.7).
 * - `network`: it was not reached, its certificate is not trusted, or the connection was cut off.
 * - `protocol`: it answered with something that RFC 8555 does not know or that the vault does not accept.
 * - `timeout`: it did not answer in time.
 * - `aborted`: the caller's signal ended it.
 */
export type AcmeErrorKind = 'problem' | 'network' | 'protocol' | 'timeout' | 'aborted';

export type AcmeErrorOptions = {
  readonly problem?: AcmeProblem | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly status?: number | undefined;
  readonly cause?: unknown;
};

const longestMessage = 2000;

export class AcmeError extends OperatorError {
  readonly kind: AcmeErrorKind;
  /** The CA's own document, with `problem`. */
  readonly problem: AcmeProblem | undefined;
  /** How long the CA asked to wait, from now: its Retry-After with 429, 503 or anything else. */
  readonly retryAfterMs: number | undefined;
  /** The HTTP status of the answer, where there was one. */
  readonly status: number | undefined;

  /** Control characters are taken out of the message, and what is longer than 2000 characters is cut. */
  constructor(kind: AcmeErrorKind, message: string, options: AcmeErrorOptions = {}) {
    super(shortened(message, longestMessage), { cause: options.cause });
    this.name = 'AcmeError';
    this.kind = kind;
    this.problem = options.problem;
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
  }

  /** The last part of the problem's type, such as `rateLimited` (RFC 8555 §6.7); empty where there is none. */
  get type(): string {
    return /^urn:.*:([^:]+)$/.exec(this.problem?.type ?? '')?.[1] ?? '';
  }
}
