/**
 * All errors that an API client can see, in one table: code, HTTP status and default text. Any other error is a bug.
 */

type Row = { readonly status: number; readonly detail: string };

const table = {
  invalid_request: { status: 400, detail: 'The request is not valid.' },
  unauthenticated: {
    status: 401,
    detail: 'A valid API key is required. Send it as "Authorization: Bearer <API_KEY>".',
  },
  forbidden: { status: 403, detail: 'The credentials do not permit this request.' },
  second_factor_required: {
    status: 403,
    detail: 'This vault requires a second factor; set up a passkey or an authenticator app first.',
  },
  approval_required: { status: 403, detail: 'This change needs the approval of a second administrator.' },
  not_found: { status: 404, detail: 'Nothing found at this path.' },
  certificate_not_found: { status: 404, detail: 'Certificate not found.' },
  version_not_found: { status: 404, detail: 'Certificate version not found.' },
  private_key_not_held: {
    status: 404,
    detail: 'The client holds the private key of this certificate; the vault never had it.',
  },
  acme_account_not_found: { status: 404, detail: 'ACME account not found.' },
  api_key_not_found: { status: 404, detail: 'API key not found.' },
  acme_client_not_found: { status: 404, detail: 'ACME client not found.' },
  administrator_not_found: { status: 404, detail: 'Administrator not found.' },
  pending_change_not_found: { status: 404, detail: 'Pending change not found.' },
  session_not_found: { status: 404, detail: 'Session not found or expired.' },
  second_factor_not_found: { status: 404, detail: 'Second factor not found.' },
  method_not_allowed: { status: 405, detail: 'Method not allowed; see the Allow header.' },
  certificate_exists: { status: 409, detail: 'A certificate with this name already exists.' },
  domains_lost: { status: 409, detail: 'The new version has not all domains of the current one.' },
  certificate_in_use: {
    status: 409,
    detail: 'API keys still list this certificate, or the vault serves HTTPS with it.',
  },
  not_renewable: {
    status: 409,
    detail: 'The certificate was imported and has no issuer that can renew it.',
  },
  deployment_exists: {
    status: 409,
    detail: 'Another active API key reports a deployment with this id for the certificate.',
  },
  deployment_not_found: { status: 404, detail: 'Deployment not found.' },
  endpoint_exists: {
    status: 409,
    detail: 'There is already an endpoint at this address with this server name.',
  },
  endpoint_not_found: { status: 404, detail: 'Endpoint not found.' },
  too_many_endpoints: { status: 409, detail: 'The vault has the maximum number of endpoints.' },
  deploy_target_exists: { status: 409, detail: 'A deploy target with this name already exists.' },
  deploy_target_not_found: { status: 404, detail: 'Deploy target not found.' },
  too_many_deploy_targets: { status: 409, detail: 'The vault has the maximum number of deploy targets.' },
  deploy_failed: { status: 502, detail: 'The target did not take the certificate.' },
  scan_not_found: { status: 404, detail: 'Scan not found.' },
  finding_not_found: { status: 404, detail: 'No scan found a server at this address.' },
  too_many_scans: { status: 409, detail: 'The vault has the maximum number of scans.' },
  too_many_deployments: { status: 409, detail: 'The API key reports the maximum number of deployments.' },
  no_current_version: { status: 409, detail: 'This certificate has not been issued yet.' },
  profile_exists: { status: 409, detail: 'The issuer already has a profile with this name.' },
  profile_in_use: { status: 409, detail: 'Certificates or API keys still use this profile.' },
  acme_account_current: {
    status: 409,
    detail: 'The ACME account is in use by an issuer and cannot be deleted.',
  },
  api_key_active: { status: 409, detail: 'The API key is active; revoke it before you delete it.' },
  api_key_exists: { status: 409, detail: 'An API key with this name already exists.' },
  api_key_inactive: { status: 409, detail: 'The API key is revoked or has expired.' },
  enrollment_not_found: { status: 404, detail: 'Enrollment not found.' },
  enrollment_active: { status: 409, detail: 'The enrollment is active; revoke it before you delete it.' },
  enrollment_inactive: { status: 409, detail: 'The enrollment is revoked, used up or has expired.' },
  replacement_not_found: { status: 404, detail: 'Replacement not found.' },
  replacement_finished: { status: 409, detail: 'The replacement is finished or canceled.' },
  nothing_to_replace: { status: 409, detail: 'No certificate can be replaced.' },
  acme_client_active: {
    status: 409,
    detail: 'The ACME client is active; revoke it before you delete it.',
  },
  acme_client_exists: { status: 409, detail: 'An ACME client with this name already exists.' },
  acme_client_inactive: { status: 409, detail: 'The ACME client is revoked or has expired.' },
  administrator_exists: { status: 409, detail: 'An administrator with this name already exists.' },
  last_administrator: {
    status: 409,
    detail: 'The last administrator cannot be deleted: signing in would be impossible.',
  },
  last_second_factor: {
    status: 409,
    detail: 'This vault requires a second factor, and this is your last one.',
  },
  sign_in_expired: { status: 409, detail: 'This step has expired or was used; begin again.' },
  passkey_exists: { status: 409, detail: 'This passkey is already registered.' },
  pending_change_closed: {
    status: 409,
    detail: 'The pending change was already decided or applied, or has expired.',
  },
  oidc_administrator: {
    status: 409,
    detail: 'This administrator signs in by OpenID Connect; the identity provider decides password and role.',
  },
  request_timeout: { status: 408, detail: 'The request did not arrive in time.' },
  payload_too_large: { status: 413, detail: 'The request is too large.' },
  headers_too_large: {
    status: 431,
    detail: 'The path or the headers are too long, or there are too many headers.',
  },
  rate_limited: { status: 429, detail: 'Too many requests; retry after the time in the Retry-After header.' },
  internal: {
    status: 500,
    detail: 'Internal error; the log of the vault has the cause under the request id.',
  },
  unavailable: { status: 503, detail: 'The vault is temporarily unavailable; retry in a moment.' },
} as const satisfies Record<string, Row>;

export type ProblemCode = keyof typeof table;

/** A rejected part of the input: `path` names it (`domains.0`, `--scope`), `message` says what is wrong. */
export type InputError = { readonly path: string; readonly message: string };

/** The words of an error on the command line, which names options and commands where the API names members. */
export type CommandLineWords = { readonly message: string; readonly hint?: string | undefined };

export type ProblemOptions = {
  /** Replaces the text of the table. */
  readonly detail?: string;
  /** A sentence that says what to do. */
  readonly hint?: string;
  readonly errors?: readonly InputError[];
  /** If they differ from those of the response. */
  readonly commandLine?: CommandLineWords;
  /** Seconds to wait before retrying. */
  readonly retryAfter?: number;
  readonly cause?: unknown;
};

const nothingMore: ProblemOptions = {};

/** The body of an error response (RFC 9457 with the members of the interface specification). */
export type ProblemBody = {
  status: number;
  code: ProblemCode;
  detail: string;
  errors?: InputError[];
  /** What a command prints, for one that works on this vault from elsewhere and asks for it. */
  command_line?: { readonly lines: readonly string[]; readonly hint?: string | undefined };
};

/** The only kind of error whose text reaches an API client. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly status: number;
  readonly hint: string | undefined;
  readonly errors: readonly InputError[];
  readonly commandLine: CommandLineWords | undefined;
  readonly retryAfter: number | undefined;
  /** Whether it has no text beyond its code. */
  readonly isUsual: boolean;

  constructor(code: ProblemCode, options: ProblemOptions = nothingMore) {
    // A problem is a response, not a bug: nothing shows its stack trace, which would cost more than the rest of the
    // response.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(options.detail ?? table[code].detail, { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'Problem';
    this.code = code;
    this.status = table[code].status;
    this.hint = options.hint;
    this.errors = options.errors ?? [];
    this.commandLine = options.commandLine;
    this.retryAfter = options.retryAfter;
    this.isUsual = options === nothingMore;
  }

  /** The JSON of the response; the hint follows the detail as a separate sentence. */
  get body(): ProblemBody {
    return {
      status: this.status,
      code: this.code,
      detail: this.hint === undefined ? this.message : `${this.message} ${this.hint}`,
      ...(this.errors.length > 0 && { errors: [...this.errors] }),
    };
  }

  /** The same with the words that a command on the vault's machine prints. */
  get bodyForCommands(): ProblemBody {
    const { message, hint } = this.commandLine ?? this;
    const isOfInput = this.commandLine === undefined && this.errors.length > 0;
    const lines = isOfInput ? this.errors.map((error) => error.message) : [message];
    return { ...this.body, command_line: { lines, hint } };
  }
}

/** What `vault --server` sends in the header Prefer (RFC 7240) to get errors in the words of the command line, too. */
export const commandLinePreference = 'errors=command-line';

/** All codes in the order of the table, for the API description. */
export const problemCodes = Object.keys(table) as ProblemCode[];

/** The HTTP status of a code. */
export function statusOf(code: ProblemCode): number {
  return table[code].status;
}
