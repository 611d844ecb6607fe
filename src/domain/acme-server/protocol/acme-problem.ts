/**
 * What an ACME client is told when the server refuses a request (RFC 8555 §6.7). Requests are answered with it in one
 * place.
 */

/** Types of problems, without `urn:ietf:params:acme:error:`, and the HTTP status of each. */
export const acmeProblemStatuses = {
  accountDoesNotExist: 400,
  alreadyReplaced: 409,
  alreadyRevoked: 400,
  badCSR: 400,
  badNonce: 400,
  badPublicKey: 400,
  badRevocationReason: 400,
  badSignatureAlgorithm: 400,
  caa: 403,
  compound: 400,
  connection: 400,
  dns: 400,
  externalAccountRequired: 403,
  incorrectResponse: 403,
  invalidContact: 400,
  invalidProfile: 400,
  malformed: 400,
  orderNotReady: 403,
  rateLimited: 429,
  rejectedIdentifier: 400,
  serverInternal: 500,
  tls: 400,
  unauthorized: 403,
  unsupportedContact: 400,
  unsupportedIdentifier: 400,
  userActionRequired: 403,
} as const;

export type AcmeProblemType = keyof typeof acmeProblemStatuses;

/** The type as problem documents have it. */
export function acmeProblemUrn(type: AcmeProblemType): string {
  return `urn:ietf:params:acme:error:${type}`;
}

/** A problem with one identifier of an order (RFC 8555 §6.7.1). */
export type AcmeSubproblem = {
  readonly type: AcmeProblemType;
  readonly detail: string;
  /** The name or address, as in the order. */
  readonly identifier: string;
};

export type AcmeProblemOptions = {
  readonly identifier?: string | undefined;
  readonly subproblems?: readonly AcmeSubproblem[];
  /** Milliseconds. */
  readonly retryAfterMs?: number;
  /** With `badSignatureAlgorithm`: those that are accepted. */
  readonly algorithms?: readonly string[];
  /** Replaces the status of the type. */
  readonly status?: number;
  readonly cause?: unknown;
};

/** Thrown where an ACME client's request is refused. `detail` is a sentence for people. */
export class AcmeProblem extends Error {
  readonly type: AcmeProblemType;
  readonly status: number;
  readonly identifier: string | undefined;
  readonly subproblems: readonly AcmeSubproblem[];
  readonly retryAfterMs: number | undefined;
  readonly algorithms: readonly string[] | undefined;

  constructor(type: AcmeProblemType, detail: string, options: AcmeProblemOptions = {}) {
    super(detail, { cause: options.cause });
    this.name = 'AcmeProblem';
    this.type = type;
    this.status = options.status ?? acmeProblemStatuses[type];
    this.identifier = options.identifier;
    this.subproblems = options.subproblems ?? [];
    this.retryAfterMs = options.retryAfterMs;
    this.algorithms = options.algorithms;
  }
}
