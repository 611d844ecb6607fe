/** Responses of a CA, and strict parsing of their JSON with errors that name what was expected. */
import { z } from 'zod';
import { describeIssue } from '../base/input-issue.ts';
import { AcmeError } from './acme-error.ts';

export type AcmeAnswer = {
  /** The requested URL. */
  readonly url: string;
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Milliseconds from the time of the response. */
  readonly retryAfterMs: number | undefined;
};

/** An absolute URL, exactly as the CA wrote it. */
export const absoluteUrl = z.string().refine((text) => URL.canParse(text), 'must be a URL');

/** The media type without parameters, in lower case; empty if missing. */
export function contentTypeOf({ headers }: Pick<AcmeAnswer, 'headers'>): string {
  return (headers['content-type'] ?? '').split(';', 1).join('').trim().toLowerCase();
}

/**
 * The JSON of the response, parsed with the schema. `what` names the expected object with its article, such as `an
 * order`. Throws AcmeError `protocol` for another media type, invalid JSON, or JSON of another form.
 */
export function jsonIn<T>(answer: AcmeAnswer, what: string, schema: z.ZodType<T>): T {
  const type = contentTypeOf(answer);
  if (type !== 'application/json') {
    throw unexpected(answer, what, type === '' ? 'a response without a content type' : type);
  }
  const { data, error } = schema.safeParse(parsedJson(answer, what));
  if (error === undefined) return data;
  const [issue] = error.issues;
  const path = issue?.path.join('.') || 'the response';
  throw unexpected(
    answer,
    what,
    `an invalid one: ${path} ${issue === undefined ? 'is invalid' : describeIssue(issue)}`,
  );
}

/**
 * The absolute URL in the Location header, exactly as the CA wrote it, because it identifies an account or an order.
 */
export function locationOf(answer: AcmeAnswer, what: string): string {
  const { location = '' } = answer.headers;
  if (URL.canParse(location)) return location;
  if (location === '' || !URL.canParse(location, answer.url)) {
    throw unexpected(answer, what, 'a response without a Location header');
  }
  return new URL(location, answer.url).href;
}

/** An AcmeError `protocol`: the host returned something other than `what`. */
export function unexpected({ url, status }: AcmeAnswer, what: string, instead: string): AcmeError {
  const host = URL.parse(url)?.host;
  return new AcmeError('protocol', `unexpected response from ${host}: expected ${what}, got ${instead}`, {
    status,
  });
}

function parsedJson(answer: AcmeAnswer, what: string): unknown {
  try {
    return JSON.parse(answer.body.toString('utf8'));
  } catch {
    // V8's message quotes the text, which may be long and does not help.
    throw unexpected(answer, what, 'invalid or incomplete JSON');
  }
}
