/** Requests to the APIs of targets, and what their responses mean. */
import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { shortened } from '../base/printable-text.ts';
import { parseRetryAfter } from '../base/retry-after.ts';
import { isSecureUrl } from '../base/secure-url.ts';
import { OutboundError, type OutboundRequest, type OutboundResponse } from '../net/outbound-http.ts';
import { maxPartial, withoutSecrets } from '../net/without-secrets.ts';
import { type TargetContext, TargetError } from './target.ts';

/** The URL of an API, without a slash at its end. Keys are sent there, so it must be https, except on localhost. */
export const apiUrl = z
  .string({ error: 'is missing; it must be the URL of the API' })
  .max(2000)
  .refine((text) => isSecureUrl(text) && URL.parse(text)?.search === '', {
    error: 'must be an https:// URL without user, query and fragment (http:// only for localhost)',
  })
  .transform((text) => text.replace(/\/$/, ''));

/** A string of visible ASCII characters, such as a token; `what` follows "must be". */
export const credential = (what: string) =>
  z
    .string({ error: `is missing; it must be ${what}` })
    .max(10_000)
    .regex(/^[\x21-\x7e]+$/, { error: `must be ${what}, without spaces or line breaks` })
    .describe(what);

/** One word of a URL's path, or a name with `{certificate}` in it; `what` follows "must be". */
export const namePattern = (what: string) =>
  z
    .string({ error: `must be ${what}` })
    .max(200)
    .regex(/^(?:[A-Za-z0-9._-]|\{certificate\})+$/, {
      error: `must be ${what}: letters, digits, dots, dashes, underscores and {certificate}`,
    })
    .describe(what);

export type TargetRequest = Pick<OutboundRequest, 'method' | 'url' | 'headers' | 'body' | 'ca' | 'pin'> & {
  /** What the request is for, after "failed to": `replace the secret`. */
  readonly purpose: string;
  /** Status codes that the caller handles in addition to 2xx. */
  readonly accept?: readonly number[];
  /** Never shown, even if the response contains it. */
  readonly secrets: readonly string[];
  /** Error responses that the caller handles in addition, by their JSON. */
  readonly acceptError?: (body: unknown) => boolean;
  /** The error text in an error response: in the JSON of its body, or behind its status. */
  readonly describeError?: (body: unknown, statusText: string) => string | undefined;
};

export type TargetResponse = Pick<OutboundResponse, 'status' | 'headers'> & {
  /** The JSON of the body; undefined if it is not JSON. */
  readonly json: unknown;
};

const maxWords = 300;
/** Only the beginning of an error text is searched for secrets. */
const maxSearched = 10 * maxWords;

/** Sends a request. Throws TargetError without a response, and for a status other than 2xx that is not accepted. */
export async function send(
  { outbound, world }: Pick<TargetContext, 'outbound' | 'world'>,
  { purpose, accept = [], acceptError, secrets, describeError, ...request }: TargetRequest,
  signal: AbortSignal,
): Promise<TargetResponse> {
  const response = await outbound({ ...request, signal }).catch((error: unknown) => {
    if (!(error instanceof OutboundError)) throw error;
    throw new TargetError(`failed to ${purpose}: ${error.message}`, { cause: error });
  });
  const { status, headers, body, statusText = '' } = response;
  const json = parsed(body);
  const isExpected = (status >= 200 && status < 300) || accept.includes(status) || acceptError?.(json);
  if (isExpected === true) return { status, headers, json };
  const { host } = new URL(request.url);
  const words = shown(describeError?.(json, statusText) ?? '', secrets);
  const redirect = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  const said = words ?? STATUS_CODES[status];
  throw new TargetError(
    `failed to ${purpose}: ${host} responded with ${status}${said === undefined ? '' : ` ${said}`}${redirect}`,
    { retryAfterMs: parseRetryAfter(headers['retry-after'], world.now()) },
  );
}

/** The body of a response in this form. Throws TargetError if it has another one. */
export function read<T>(schema: z.ZodType<T>, { json }: TargetResponse, purpose: string): T {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  throw new TargetError(`failed to ${purpose}: unexpected response`);
}

/** One short line without secrets; undefined if nothing is left. */
export function shown(words: string, secrets: readonly string[]): string | undefined {
  const hidden = withoutSecrets(words.slice(0, maxSearched), secrets);
  const whole = words.length > maxSearched ? hidden.slice(0, -maxPartial) : hidden;
  return shortened(whole, maxWords) || undefined;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // Not JSON, such as an empty body or the page of a proxy.
    return undefined;
  }
}
