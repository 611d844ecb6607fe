/**
 * Outbound HTTP to CAs and DNS providers: one request, one response, with a deadline and a size limit. Redirects are
 * never followed, so nothing is sent to an unconfigured host, and the guard checks every connection.
 */

import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { second } from '../base/duration.ts';
import { shortened } from '../base/printable-text.ts';
import { describeConnectError } from '../base/system-error.ts';
import type { World } from '../base/world.ts';
import { type ProxyEnvironment, proxiesIn } from './http-proxies.ts';
import { type OutboundGuard, OutboundRefusal, outboundGuard } from './outbound-guard.ts';
import { PinMismatch, pinnedConnection } from './pinned-connection.ts';

export type OutboundRequest = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `https:` or `http:`. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** PEM certificates that replace the public CAs, for servers with a private CA. */
  readonly ca?: string | undefined;
  /** The pin of the server's public key (public-key-pin.ts), which then decides in place of all CAs. */
  readonly pin?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Time limit of the exchange, from connecting to the last byte; 30 seconds if undefined. */
  readonly timeoutMs?: number;
  /** Largest accepted body; 1 MiB if undefined. */
  readonly maxBytes?: number;
};

export type ResponseHead = {
  readonly status: number;
  /** Lower-case names; values of repeated headers are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
};

export type OutboundResponse = ResponseHead & {
  readonly body: Buffer;
  /** The reason phrase behind the status: what the server says in place of a body, or empty. */
  readonly statusText?: string;
};

/** Sends one request. Throws OutboundError if there is no complete response; any status counts as a response. */
export type Outbound = (request: OutboundRequest) => Promise<OutboundResponse>;

/**
 * Why there was no response: host unreachable, certificate not trusted, timeout, connection cut off, response too
 * large, request aborted, or address refused by the guard.
 */
export type OutboundReason =
  | 'unreachable'
  | 'untrusted'
  | 'timeout'
  | 'cut-off'
  | 'too-large'
  | 'aborted'
  | 'refused';

export class OutboundError extends Error {
  readonly reason: OutboundReason;
  /** The head of a response whose body was too large. */
  readonly head: ResponseHead | undefined;

  /** The message is for people: it names the host, never the path, headers or body. */
  constructor(reason: OutboundReason, message: string, cause?: unknown, head?: ResponseHead) {
    super(message, { cause });
    this.name = 'OutboundError';
    this.reason = reason;
    this.head = head;
  }
}

const defaultTimeout = 30 * second;
const defaultMaxBytes = 1024 * 1024;
/** Shorter than servers keep idle connections, so that no request is sent on a connection that is being closed. */
const idleConnection = 4 * second;

type Agents = { readonly http: HttpAgent; readonly https: HttpsAgent };
type Exchange = OutboundRequest & {
  /** A connection of its own, whose server has been verified. */
  readonly socket: TLSSocket | undefined;
  readonly timeoutMs: number;
  readonly userAgent: string;
  readonly guard: OutboundGuard;
};

/**
 * The real implementation: keeps and reuses connections, and uses the proxies of the environment. Throws OperatorError
 * if a proxy is not an HTTP proxy. The guard checks the host of each request; a proxy is a setting and resolves names
 * itself.
 */
export function outboundHttp(
  world: World,
  environment: ProxyEnvironment,
  userAgent: string,
  guard: OutboundGuard = outboundGuard(),
): Outbound {
  const options = { keepAlive: true, timeout: idleConnection, proxyEnv: proxiesIn(environment) };
  const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) };
  return async (wanted) => {
    const { signal, timeoutMs = defaultTimeout } = wanted;
    const ended = new AbortController();
    const timer = new AbortController();
    const timedOut = world.sleep(timeoutMs, timer.signal).then(() => {
      if (!timer.signal.aborted) ended.abort('timeout');
    });
    const stop = () => ended.abort('aborted');
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted === true) stop();
    try {
      const socket = await pinnedConnection(wanted, guard, ended.signal);
      return await exchange({ ...wanted, timeoutMs, userAgent, guard, socket }, agents, ended.signal);
    } catch (error) {
      throw asOutboundError(error, wanted, timeoutMs, ended.signal);
    } finally {
      signal?.removeEventListener('abort', stop);
      timer.abort();
      await timedOut;
    }
  };
}

/** Settles as soon as the signal is aborted, even while a proxy or a name server delays the connection. */
function exchange(wanted: Exchange, agents: Agents, signal: AbortSignal): Promise<OutboundResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<OutboundResponse>();
  const giveUp = () => reject(new Error('ended'));
  if (signal.aborted) {
    giveUp();
    return promise;
  }
  const request = open(wanted, agents);
  signal.addEventListener('abort', giveUp, { once: true });
  // Several errors may occur, even after the response has started; each needs a listener.
  request.on('error', reject);
  let hasAnswer = false;
  request.once('response', (response) => {
    hasAnswer = true;
    collect(response, wanted).then(resolve, reject);
  });
  // After a response that asks for another protocol, Node closes the connection silently.
  request.once('close', () => hasAnswer || reject(cutOff()));
  request.end(wanted.body);
  return promise.finally(() => {
    signal.removeEventListener('abort', giveUp);
    // Destroys an unfinished exchange; after a complete response, the connection no longer belongs to the request.
    request.destroy();
  });
}

function open(
  { method, url, headers, body, ca, timeoutMs, userAgent, guard, socket }: Exchange,
  agents: Agents,
): ClientRequest {
  const target = new URL(url);
  const isSecure = target.protocol === 'https:';
  if (!isSecure && target.protocol !== 'http:') throw new Error(`unsupported protocol ${target.protocol}`);
  const host = target.hostname.replace(/^\[|\]$/g, '');
  const port = Number(target.port) || (isSecure ? 443 : 80);
  const options = {
    method,
    timeout: timeoutMs,
    lookup: guard.target(host, port).lookup,
    headers: {
      'User-Agent': userAgent,
      'Accept-Encoding': 'identity',
      ...(body !== undefined && { 'Content-Length': String(Buffer.byteLength(body)) }),
      ...headers,
    },
  };
  if (!isSecure) return httpRequest(target, { ...options, agent: agents.http });
  if (socket !== undefined) return httpsRequest(target, { ...options, createConnection: () => socket });
  return httpsRequest(target, { ...options, agent: agents.https, ...(ca !== undefined && { ca }) });
}

async function collect(
  response: IncomingMessage,
  { url, maxBytes = defaultMaxBytes }: OutboundRequest,
): Promise<OutboundResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const head = {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(
      Object.entries(response.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')]),
    ),
  };
  const chunks: Buffer[] = [];
  let size = 0;
  response.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBytes) {
      const words = `${new URL(url).host} sent a response larger than ${maxBytes} bytes`;
      reject(new OutboundError('too-large', words, undefined, head));
    } else chunks.push(chunk);
  });
  response.on('error', reject);
  response.once('end', resolve);
  response.once('close', () => reject(cutOff()));
  await promise;
  return { ...head, body: Buffer.concat(chunks), statusText: response.statusMessage ?? '' };
}

function cutOff(): Error {
  return Object.assign(new Error('the response is incomplete'), { code: 'ECONNRESET' });
}

function asOutboundError(
  error: unknown,
  { url }: OutboundRequest,
  timeoutMs: number,
  ended: AbortSignal,
): OutboundError {
  if (error instanceof OutboundError) return error;
  const host = URL.parse(url)?.host ?? 'an invalid URL';
  if (ended.reason === 'timeout') {
    return new OutboundError('timeout', `${host} did not answer within ${timeoutMs / 1000} s`, error);
  }
  if (ended.aborted) return new OutboundError('aborted', `the request to ${host} was canceled`, error);
  if (error instanceof OutboundRefusal) return new OutboundError('refused', error.message, error);
  if (error instanceof PinMismatch) return new OutboundError('untrusted', error.message, error);
  const { code = '' } = error as NodeJS.ErrnoException;
  const reason = shortened(describeConnectError(error, host), 300);
  if (isCertificateTrouble(code)) {
    return new OutboundError('untrusted', `the certificate of ${host} is not trusted: ${reason}`, error);
  }
  if (code.startsWith('HPE_')) {
    return new OutboundError('cut-off', `${host} did not respond with HTTP: ${reason}`, error);
  }
  if (['ECONNRESET', 'EPIPE'].includes(code)) {
    return new OutboundError(
      'cut-off',
      `${host} closed the connection before the response was complete`,
      error,
    );
  }
  return new OutboundError('unreachable', `cannot connect to ${host}: ${reason}`, error);
}

function isCertificateTrouble(code: string): boolean {
  return /^(ERR_TLS_CERT|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|PATH_LENGTH)/.test(
    code,
  );
}
