/** Answers of a CA, and how their JSON is read: strictly, with an error that says what was expected. */
import { z } from 'zod';
import { describeIssue } from '../base/input-issue.ts';
import { AcmeError } from './acme-error.ts';

export type AcmeAnswer = {
  /** What was asked. */
  readonly url: string;
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Milliseconds from the answer on. */
  readonly retryAfterMs: number | undefined;
};

/** An absolute URL, as the CA writes it. */
export const absoluteUrl = z.string().refine((text) => URL.canParse(text), 'must be a URL');

/** The media type without its parameters, in lower case; empty where there is none. */
export function contentTypeOf({ headers }: Pick<AcmeAnswer, 'headers'>): string {
  return (headers['content-type'] ?? '').split(';', 1).join('').trim().toLowerCase();
}

/**
 * The answer's JSON in the form of the schema. `what` is what was expected, with its article, such as `an order`. Throws
 * AcmeError `protocol` where it is of another media type, no JSON, or JSON of another form.
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

/** The absolute URL in the Location header, exactly as the CA writes it, because it names an account or an order. */
export function locationOf(answer: AcmeAnswer, what: string): string {
  const { location = '' } = answer.headers;
  if (URL.canParse(location)) return location;
  if (location === '' || !URL.canParse(location, answer.url)) {
    throw unexpected(answer, what, 'a response without a Location header');
  }
  return new URL(location, answer.url).href;
}

/** AcmeError `protocol`: the host answered with something else than `what`. */
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
    // V8's reason quotes the text, which may be long and is no help to anybody.
    throw unexpected(answer, what, 'invalid or incomplete JSON');
  }
}
