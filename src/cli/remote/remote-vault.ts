/**
 * A vault elsewhere, as commands use it: the endpoints of administrators, with an API key that has a role, or with the
 * session of a person. Responses are bounded, redirects are not followed, and what the server says is an error of the
 * operator like any other.
 */
import { readFileSync } from 'node:fs';
import { minute, second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { commandLinePreference, Problem, problemCodes } from '../../base/problem.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { unguarded } from '../../net/outbound-guard.ts';
import {
  type Outbound,
  OutboundError,
  type OutboundResponse,
  outboundHttp,
} from '../../net/outbound-http.ts';
import type { ServerChoice, Terminal } from '../terminal/terminal.ts';
import { type Login, loginFor, type ServerTrust } from './login-file.ts';

type Headers = Readonly<Record<string, string>>;

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** A page of a list has at most 1,000 entries. */
const maxResponse = 64 * 1024 * 1024;
const timeout = 60 * second;

/** For requests that wait for a CA or name servers, or that read all certificates, in milliseconds. */
export const slowRequest = 5 * minute;

/** A list without an end is no list of a vault. */
const maxEntries = 1_000_000;

export class RemoteVault {
  readonly #outbound: Outbound;
  readonly #url: string;
  readonly #login: ServerTrust & Partial<Login>;

  /** `url` without a trailing slash; `login` without a key for requests that need none. */
  constructor({ world, environment, version }: Terminal, url: string, login: ServerTrust & Partial<Login>) {
    // A person names the server, and it may be on this machine.
    this.#outbound = outboundHttp(world, environment, `certificate-vault/${version}`, unguarded);
    this.#url = url;
    this.#login = login;
  }

  get<T>(path: string, query: Query = {}): Promise<T> {
    return this.send<T>('GET', pathWith(path, query));
  }

  /** All pages of a list, one after the other. */
  async *pages<T>(path: string, query: Query = {}): AsyncGenerator<readonly T[]> {
    let next: string | undefined = `/api/v1${pathWith(path, { limit: 1000, ...query })}`;
    let left = maxEntries;
    while (next !== undefined) {
      const { value, link }: Answer<readonly T[]> = await this.#ask('GET', next);
      left -= value.length;
      if (left < 0) throw new OperatorError(`${this.#url} sent a list of more than ${maxEntries} entries`);
      yield value;
      next = value.length === 0 ? undefined : nextPage(link, this.#url);
    }
  }

  /** A whole list, all its pages. */
  async list<T>(path: string, query: Query = {}): Promise<T[]> {
    return (await Array.fromAsync(this.pages<T>(path, query))).flat();
  }

  /**
   * Sends a request to `/api/v1` plus `path`, and returns the JSON of the response, undefined if it has none. Throws
   * the Problem that the vault answers, with its words for the command line, and OperatorError if no vault answers
   * within `timeoutMs`.
   */
  async send<T>(method: Method, path: string, body?: unknown, timeoutMs = timeout): Promise<T> {
    return (await this.#ask<T>(method, `/api/v1${path}`, body, timeoutMs)).value;
  }

  /** A file of a certificate, with its version. Throws like `send`. */
  async download(
    path: string,
    headers: Headers = {},
  ): Promise<{ readonly content: Buffer; readonly version: number }> {
    const answer = await this.#exchange('GET', `/api/v1${path}`, headers);
    const version = Number(answer.headers['certificate-version']);
    if (answer.status === 200 && version > 0) return { content: answer.body, version };
    throw problemIn(jsonIn(answer)) ?? notAVault(this.#url, answer.status);
  }

  async #ask<T>(method: Method, path: string, body?: unknown, timeoutMs = timeout): Promise<Answer<T>> {
    const type = body === undefined ? {} : { 'Content-Type': 'application/json' };
    const accept = { Accept: 'application/json', ...type };
    const answer = await this.#exchange(method, path, accept, body, timeoutMs);
    const { status, headers } = answer;
    const value = jsonIn(answer);
    if (status >= 200 && status < 300 && (value !== undefined || answer.body.length === 0)) {
      return { value: value as T, link: headers.link };
    }
    throw problemIn(value) ?? notAVault(this.#url, status);
  }

  async #exchange(
    method: Method,
    path: string,
    headers: Headers,
    body?: unknown,
    timeoutMs = timeout,
  ): Promise<OutboundResponse> {
    const { key, ca, pin } = this.#login;
    try {
      return await this.#outbound({
        method,
        url: this.#url + path,
        headers: {
          ...(key !== undefined && { Authorization: `Bearer ${key.expose()}` }),
          Prefer: commandLinePreference,
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ca,
        pin,
        timeoutMs,
        maxBytes: maxResponse,
      });
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      throw new OperatorError(error.message, { hint: hints[error.reason], cause: error });
    }
  }
}

/** The JSON of a response; undefined if it has none, or not of its content type. */
function jsonIn({ headers, body }: OutboundResponse): unknown {
  if (!/^application\/(problem\+)?json\b/.test(headers['content-type'] ?? '')) return undefined;
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

type Answer<T> = { readonly value: T; readonly link: string | undefined };

/** The vault that the command line chooses. Throws OperatorError if a file cannot be read or there is no key for it. */
export function remoteVault(terminal: Terminal, choice: ServerChoice): RemoteVault {
  const { key, ...stored } = loginFor(terminal.environment, choice.url);
  return new RemoteVault(terminal, choice.url, { key, ...(trustIn(choice) ?? stored) });
}

/** How the command line trusts the server; undefined if it does not say. Throws OperatorError for an unusable file. */
export function trustIn({ caFile, pin }: ServerChoice): ServerTrust | undefined {
  if (caFile === undefined && pin === undefined) return undefined;
  return { ca: caFile === undefined ? undefined : caIn(caFile), pin };
}

/** A name as a part of a path. Throws `not_found` for `.` and `..`, with which a URL is that of something else. */
export function inPath(name: string | number): string {
  if (name === '.' || name === '..') throw new Problem('not_found');
  return encodeURIComponent(name);
}

/** The PEM certificates in the file. */
function caIn(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new OperatorError(`--ca-file: cannot read ${path}: ${describeSystemError(error)}`, {
      cause: error,
    });
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw new OperatorError(`--ca-file: ${path} has no PEM certificate`, {
    hint: 'Use a file with -----BEGIN CERTIFICATE-----.',
  });
}

function pathWith(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/** Path and query of the next page, which must be on the same server: its public URL may be another name. */
function nextPage(link: string | undefined, url: string): string | undefined {
  const target = /<([^<>]+)>;\s*rel="next"/.exec(link ?? '')?.[1];
  const next = target === undefined ? null : URL.parse(target, url);
  return next?.pathname.startsWith('/api/v1/') ? next.pathname + next.search : undefined;
}

/** The problem of a response, as a command on the host would throw it. */
function problemIn(value: unknown): Problem | undefined {
  const { code, detail, command_line: words } = membersOf(value);
  const known = problemCodes.find((one) => one === code);
  if (known === undefined || typeof detail !== 'string') return undefined;
  const { lines, hint } = membersOf(words);
  const printed = Array.isArray(lines) ? lines.filter((line) => typeof line === 'string') : [];
  return new Problem(known, {
    detail,
    ...(typeof hint === 'string' && { hint }),
    errors: printed.map((message) => ({ path: '', message })),
  });
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function notAVault(url: string, status: number): OperatorError {
  return new OperatorError(`${url} responded with status ${status}, and not as a vault`, {
    hint: 'Check the URL. Redirects are not followed.',
  });
}

const hints: Readonly<Record<OutboundError['reason'], string>> = {
  unreachable: 'Check the URL, DNS and the firewall, and whether this machine needs a proxy (HTTPS_PROXY).',
  untrusted:
    'If its certificate is from a private CA, pass that with --ca-file, or the public key with --pin.',
  timeout: 'The change may have taken effect: check that before you try again.',
  'cut-off': 'The change may have taken effect: check that before you try again.',
  'too-large': 'Check that the URL is the one of a vault.',
  aborted: 'Try again.',
  refused: 'Check the URL.',
};
