/**
 * One HTTP exchange with a CA: to its own host only, and either an answer with a good status or an AcmeError. Nonces are
 * collected from whatever comes back.
 */

import { BlockList, isIP } from 'node:net';
import { parseRetryAfter } from '../base/retry-after.ts';
import { OutboundError, type OutboundResponse } from '../net/outbound-http.ts';
import { type AcmeAnswer, contentTypeOf } from './acme-answer.ts';
import { AcmeError } from './acme-error.ts';
import type { AcmeContext, AcmeServer } from './acme-types.ts';
import type { NoncePool } from './nonce-pool.ts';
import { problemSentence, readProblem } from './problem-document.ts';

export type AcmeExchange = {
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly url: string;
  readonly body?: string;
  readonly accept?: string | undefined;
};

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

export class AcmeTransport {
  readonly #context: AcmeContext;
  readonly #server: AcmeServer;
  readonly #nonces: NoncePool;

  constructor(context: AcmeContext, server: AcmeServer, nonces: NoncePool) {
    this.#context = context;
    this.#server = server;
    this.#nonces = nonces;
  }

  /** RFC 8555 §6.1: https, but for a CA on this machine. Throws AcmeError `protocol` for that and for a URL elsewhere. */
  check(url: string): void {
    checkUrl(url, this.#server.directoryUrl);
  }

  /**
   * The answer, its status is 2xx. Throws AcmeError: `protocol` for a URL elsewhere (nothing is sent then), a redirect, a
   * failure without a problem document, or too long a body.
   */
  async send(exchange: AcmeExchange, signal: AbortSignal): Promise<AcmeAnswer> {
    const { method, url, body, accept } = exchange;
    this.check(url);
    const headers = {
      'Accept-Language': 'en',
      ...(accept !== undefined && { Accept: accept }),
      ...(body !== undefined && { 'Content-Type': 'application/jose+json' }),
    };
    const { ca } = this.#server;
    try {
      const request = { method, url, headers, signal, ca, ...(body !== undefined && { body }) };
      const response = await this.#context.outbound(request);
      // Who asks for a nonce by HEAD takes it from the answer; in the pool somebody else could be faster.
      if (method !== 'HEAD') this.#nonces.add(response.headers['replay-nonce']);
      const retryAfterMs = parseRetryAfter(response.headers['retry-after'], this.#context.world.now());
      const answer = { url, ...response, retryAfterMs };
      if (response.status >= 200 && response.status < 300) return answer;
      throw failure(answer);
    } catch (error) {
      throw error instanceof OutboundError ? withoutAnswer(error) : error;
    }
  }
}

function checkUrl(text: string, directoryUrl: string): void {
  const directory = URL.parse(directoryUrl);
  if (directory === null || !['https:', 'http:'].includes(directory.protocol)) {
    throw new AcmeError('protocol', `the directory URL is invalid: ${directoryUrl}`);
  }
  if (directory.protocol === 'http:' && !isLoopback(directory.hostname)) {
    throw new AcmeError('protocol', `${directory.host} must use https; no request was sent`);
  }
  const url = URL.parse(text);
  if (url === null) throw new AcmeError('protocol', `${directory.host} returned an invalid URL: ${text}`);
  if (url.origin !== directory.origin || url.username !== '' || url.password !== '') {
    const elsewhere = `${url.protocol}//${url.host}`;
    throw new AcmeError(
      'protocol',
      `${directory.host} returned a URL on ${elsewhere}; requests are sent only to the origin of the directory`,
    );
  }
}

function isLoopback(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isIP(address) === 0) return address === 'localhost' || address.endsWith('.localhost');
  return loopback.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

function failure(answer: AcmeAnswer & OutboundResponse): AcmeError {
  const { status, retryAfterMs, url } = answer;
  const host = URL.parse(url)?.host;
  if (status >= 300 && status < 400) {
    return new AcmeError(
      'protocol',
      `${host} responded with a redirect (${status}); redirects are not followed`,
      {
        status,
      },
    );
  }
  if (contentTypeOf(answer) !== 'application/problem+json') {
    const message = `${host} responded with HTTP status ${status} and no reason`;
    return new AcmeError('protocol', message, { status, retryAfterMs });
  }
  const problem = problemIn(answer);
  if (problem === undefined) {
    const message = `${host} responded with HTTP status ${status} and an unreadable problem document`;
    return new AcmeError('protocol', message, { status, retryAfterMs });
  }
  return new AcmeError('problem', problemSentence(problem), { problem, status, retryAfterMs });
}

function problemIn({ body, status }: AcmeAnswer) {
  try {
    return readProblem(JSON.parse(body.toString('utf8')), status);
  } catch {
    // No JSON, or not all of it.
    return undefined;
  }
}

function withoutAnswer(error: OutboundError): AcmeError {
  const { reason, message } = error;
  switch (reason) {
    case 'aborted':
    case 'timeout':
      return new AcmeError(reason, message, { cause: error });
    case 'too-large':
    case 'refused':
      return new AcmeError('protocol', message, { cause: error });
    default:
      return new AcmeError('network', message, { cause: error });
  }
}
