/**
 * HTTP APIs of DNS providers: JSON requests and responses, credentials for each attempt, short waits if a provider asks
 * for them, and errors that say in a sentence what failed, quoting the provider but no secrets.
 */

import { STATUS_CODES } from 'node:http';
import type { z } from 'zod';
import { second } from '../../base/duration.ts';
import { describeIssue } from '../../base/input-issue.ts';
import { shortened } from '../../base/printable-text.ts';
import { parseRetryAfter } from '../../base/retry-after.ts';
import { Secret } from '../../base/secret.ts';
import { withoutTrailing } from '../../base/trailing.ts';
import { OutboundError, type OutboundRequest } from '../../net/outbound-http.ts';
import { maxPartial, withoutSecrets } from '../../net/without-secrets.ts';
import { type DnsContext, DnsProviderError } from '../dns-provider.ts';
import { isPublicApi } from './api-settings.ts';

export type ApiRequest = {
  readonly method: OutboundRequest['method'];
  /**
   * A path that is appended to the base URL, beginning with a slash; or a complete URL from the API, on the same host.
   */
  readonly path: string;
  /** The purpose of the request, after "failed to": `list the zones`. */
  readonly purpose: string;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly form?: Readonly<Record<string, string>>;
  readonly xml?: string;
  /** Status codes that the caller handles in addition to 2xx. */
  readonly accept?: readonly number[];
};

export type ApiAnswer = {
  readonly request: ApiRequest;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined if it is empty, or if an error response has an unreadable body. */
  readonly body: unknown;
  /** The token or signature in the Authorization header. */
  readonly sent: Secret<string> | undefined;
};

export type ApiOptions = {
  readonly context: DnsContext;
  /** The name of the provider. */
  readonly title: string;
  readonly baseUrl: string;
  /** A sentence: the permissions that the credentials need. */
  readonly permission: string;
  /** Never shown in a message, even if the provider returns it. */
  readonly secrets: readonly Secret<string>[];
  /** The error text of the provider, from the body of an error response. It is shown only for public APIs. */
  readonly describeError?: (body: unknown) => string | undefined;
  /** Headers with the credentials, created for each attempt. */
  readonly authorize?: (
    request: OutboundRequest,
    signal: AbortSignal,
  ) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** Drops a token that the provider rejects; the request is sent once more. */
  readonly renew?: () => void;
  /** JSON if undefined. Throws if the text does not have the format. */
  readonly decode?: (text: string) => unknown;
  /** Transient errors other than 429 and 5xx. */
  readonly isTransient?: (answer: ApiAnswer) => boolean;
};

export type JsonApi = {
  /** A response with a 2xx or accepted status. Throws DnsProviderError for any other. */
  readonly send: (request: ApiRequest, signal: AbortSignal) => Promise<ApiAnswer>;
  /** The parsed body. Throws DnsProviderError if it has another form. */
  readonly read: <T>(schema: z.ZodType<T>, answer: ApiAnswer) => T;
  /** The error that `send` would have thrown for an accepted response. */
  readonly refusal: (answer: ApiAnswer) => DnsProviderError;
  /**
   * Provider text fit for messages: one short line without secrets; undefined if nothing is left or it is not the
   * public API.
   */
  readonly shown: (words: string) => string | undefined;
};

const retries = 3;
const maxWait = 30 * second;
const maxWordsLength = 400;
/** Only the beginning of what a provider says is searched for secrets and shown. */
const maxSearched = 10 * maxWordsLength;
const unreadable = Symbol('unreadable');

export function jsonApi(options: ApiOptions): JsonApi {
  const { context, title } = options;

  const isKnown = isPublicApi(options.baseUrl);
  const shown = (words: string) => (isKnown ? presentable(options.secrets, words) : undefined);

  const once = async (request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> => {
    const wanted = outboundRequest(options, request);
    const credentials = await options.authorize?.(wanted, signal);
    const headers = { ...wanted.headers, ...credentials };
    const response = await context.outbound({ ...wanted, headers, signal });
    const { status } = response;
    const token = credentials?.Authorization?.split(' ').at(-1);
    const sent = token === undefined ? undefined : new Secret(token);
    const body = decoded(response.body.toString('utf8'), options.decode ?? JSON.parse);
    if (body !== unreadable) return { request, status, headers: response.headers, body, sent };
    if (status >= 200 && status < 300) {
      const type = response.headers['content-type'] ?? 'no content type';
      const what = isKnown ? `${status}, ${type}` : status;
      throw new DnsProviderError(
        `${title} failed to ${request.purpose}: unreadable response (${what}). Check the URL.`,
      );
    }
    return { request, status, headers: response.headers, body: undefined, sent };
  };

  const send = async (request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> => {
    let mayRenew = options.renew !== undefined;
    for (let attempt = 0; ; attempt += 1) {
      const answer = await once(request, signal).catch((error: unknown) => asFailure(error, request));
      if (!(answer instanceof DnsProviderError)) {
        if (isSuccess(answer) || (request.accept?.includes(answer.status) && !isTransient(answer))) {
          return answer;
        }
        if (answer.status === 401 && mayRenew) {
          mayRenew = false;
          options.renew?.();
          continue;
        }
      }
      const failure = answer instanceof DnsProviderError ? answer : refusal(answer);
      const passes = answer instanceof DnsProviderError ? isCutOff(answer) : isTransient(answer);
      const wait = failure.retryAfterMs ?? 2 ** attempt * second;
      if (!passes || attempt >= retries || wait > maxWait) throw failure;
      await pause(context, title, wait, signal);
    }
  };

  const isTransient = (answer: ApiAnswer): boolean =>
    [429, 500, 502, 503, 504].includes(answer.status) || options.isTransient?.(answer) === true;

  const asFailure = (error: unknown, { purpose }: ApiRequest): DnsProviderError => {
    if (!(error instanceof OutboundError)) throw error;
    return new DnsProviderError(`${title} failed to ${purpose}: ${error.message}`, { cause: error });
  };

  const refusal = (answer: ApiAnswer): DnsProviderError => {
    const { status, request } = answer;
    const words = answer.body === undefined || !isKnown ? undefined : options.describeError?.(answer.body);
    const secrets = answer.sent === undefined ? options.secrets : [answer.sent, ...options.secrets];
    const said = presentable(secrets, words ?? '') ?? STATUS_CODES[status];
    const because = said === undefined ? String(status) : `${status}: ${said}`;
    const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], context.world.now());
    if (status === 401 || status === 403) {
      return new DnsProviderError(
        `${title} refused to ${request.purpose} (${because}). ${options.permission}`,
      );
    }
    if (status === 429) {
      const wait = retryAfterMs === undefined ? '' : `; retry after ${Math.ceil(retryAfterMs / second)} s`;
      return new DnsProviderError(
        `${title} failed to ${request.purpose}: too many requests (${because})${wait}`,
        { retryAfterMs },
      );
    }
    return new DnsProviderError(`${title} failed to ${request.purpose} (${because})`, { retryAfterMs });
  };

  const read = <T>(schema: z.ZodType<T>, { body, request }: ApiAnswer): T => {
    const parsed = schema.safeParse(body);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const where = issue?.path.join('.') || 'the response';
    throw new DnsProviderError(
      `${title} failed to ${request.purpose}: unexpected response (${where} ${issue === undefined ? 'is invalid' : describeIssue(issue)})`,
    );
  };

  return { send, read, refusal, shown };
}

/** Waits. Throws DnsProviderError if aborted. */
export async function pause(
  { world }: DnsContext,
  title: string,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  await world.sleep(ms, signal);
  if (signal.aborted) throw new DnsProviderError(`the request to ${title} was canceled`);
}

/** All strings in a value, for providers whose errors have many forms. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

function outboundRequest({ baseUrl, title }: ApiOptions, request: ApiRequest): OutboundRequest {
  const base = withoutTrailing(baseUrl, '/');
  const url = new URL(request.path.startsWith('/') ? base + request.path : request.path);
  if (url.origin !== new URL(base).origin) {
    throw new DnsProviderError(
      `${title} returned a URL on another host, ${url.host}; no request was sent (${request.purpose})`,
    );
  }
  for (const [name, value] of Object.entries(request.query ?? {})) url.searchParams.set(name, String(value));
  const [type, body] = bodyOf(request);
  const headers = {
    Accept: request.xml === undefined ? 'application/json' : 'text/xml',
    ...(type !== undefined && { 'Content-Type': type }),
    ...request.headers,
  };
  return { method: request.method, url: url.href, headers, ...(body !== undefined && { body }) };
}

function bodyOf({ json, form, xml }: ApiRequest): [type?: string, body?: string] {
  if (json !== undefined) return ['application/json', JSON.stringify(json)];
  if (form !== undefined) return ['application/x-www-form-urlencoded', new URLSearchParams(form).toString()];
  return xml === undefined ? [] : ['text/xml', xml];
}

function decoded(text: string, decode: (text: string) => unknown): unknown {
  if (text.trim() === '') return undefined;
  try {
    return decode(text);
  } catch {
    // The text is not shown: it may be a complete page with unknown content.
    return unreadable;
  }
}

function isSuccess({ status }: ApiAnswer): boolean {
  return status >= 200 && status < 300;
}

function isCutOff({ cause }: DnsProviderError): boolean {
  return cause instanceof OutboundError && ['cut-off', 'unreachable'].includes(cause.reason);
}

function presentable(secrets: readonly Secret<string>[], words: string): string | undefined {
  const hidden = withoutSecrets(
    words.slice(0, maxSearched),
    secrets.map((secret) => secret.expose()),
  );
  // Words that were cut may end in a part of a secret that is too short to recognize.
  const whole = words.length > maxSearched ? hidden.slice(0, -maxPartial) : hidden;
  return shortened(whole, maxWordsLength) || undefined;
}
