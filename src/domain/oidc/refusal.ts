/** Why a sign-in by OpenID Connect fails: for the person, and for the audit log. */
import { shortened } from '../../base/printable-text.ts';
import { OutboundError } from '../../net/outbound-http.ts';

/** Why a sign-in failed, as the console shows it. */
export type RefusalCode =
  /** This browser or program has begun no sign-in, or not lately, or another one since. */
  | 'expired'
  | 'provider_unreachable'
  /** The provider or the person at it declined. */
  | 'declined'
  /** What the provider sent is not valid. */
  | 'invalid'
  /** The person has no role here. */
  | 'not_permitted'
  /** The person is new, and their name belongs to another administrator. */
  | 'name_taken'
  | 'rate_limited';

/** A sign-in that failed; the audit log gets `reason` and `facts`, and the person `code`. */
export class OidcRefusal extends Error {
  readonly code: RefusalCode;
  readonly reason: string;
  readonly facts: Readonly<Record<string, string>>;

  constructor(
    code: RefusalCode,
    reason: string,
    facts: Readonly<Record<string, string>> = {},
    cause?: unknown,
  ) {
    super(reason, { cause });
    this.name = 'OidcRefusal';
    this.code = code;
    this.reason = reason;
    this.facts = facts;
  }

  /** The reason with its facts, for the operator. */
  get summary(): string {
    return [this.reason, ...Object.values(this.facts)].join(': ');
  }
}

/**
 * Errors that a provider may return (RFC 6749 §4.1.2.1, OpenID Connect Core 1.0 §3.1.2.6, RFC 8628 §3.5); others are
 * not recorded.
 */
const knownErrors = [
  ...[
    'access_denied',
    'invalid_request',
    'unauthorized_client',
    'unsupported_response_type',
    'invalid_scope',
  ],
  ...[
    'server_error',
    'temporarily_unavailable',
    'login_required',
    'consent_required',
    'interaction_required',
  ],
  ...['account_selection_required', 'invalid_grant', 'invalid_client', 'expired_token'],
];

/** The refusal for an error of the libraries, which is about what the provider sent, or did not send. */
export function refusalFor(error: unknown): OidcRefusal {
  if (error instanceof OidcRefusal) return error;
  const outbound = causesOf(error).find((cause) => cause instanceof OutboundError);
  if (outbound !== undefined) {
    return new OidcRefusal(
      'provider_unreachable',
      'provider unreachable',
      { error: outbound.message },
      error,
    );
  }
  const { code, error: said, message } = error as { code?: unknown; error?: unknown; message?: unknown };
  const known = knownErrors.find((one) => one === said) ?? 'other';
  if (known === 'expired_token') return new OidcRefusal('expired', 'expired at the provider', {}, error);
  if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR' || known === 'access_denied') {
    return new OidcRefusal('declined', 'declined by the provider', { error: known }, error);
  }
  if (said !== undefined) {
    return new OidcRefusal('invalid', 'code or client rejected by the provider', { error: known }, error);
  }
  const detail = shortened(String(message ?? 'unknown'), 200);
  return new OidcRefusal('invalid', 'invalid response of the provider', { error: detail }, error);
}

/** The error and its causes, of which there are at most five. */
function causesOf(error: unknown): unknown[] {
  const found: unknown[] = [];
  for (let one = error; one instanceof Error && found.length < 5; one = one.cause) found.push(one);
  return found;
}
