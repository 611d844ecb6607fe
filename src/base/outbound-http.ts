/**
 * HTTP towards others: CAs and DNS providers. One request, one answer, within a deadline and a size; redirects are never
 * followed, so that nothing is sent to a host that nobody configured.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { second } from './duration.ts';
import type { World } from './world.ts';

export type OutboundRequest = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `https:` or `http:`. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** PEM certificates that are trusted in place of the public CAs, for a server with a private CA. */
  readonly ca?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** For the whole exchange, from the connection to the last byte; 30 seconds where undefined. */
  readonly timeoutMs?: number;
  /** Largest body that is taken; 1 MiB where undefined. */
  readonly maxBytes?: number;
};

export type OutboundResponse = {
  readonly status: number;
  /** By lower-case name; values of repeated headers are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

/** Makes one request. Throws OutboundError where there is no whole answer; any status is an answer. */
export type Outbound = (request: OutboundRequest) => Promise<OutboundResponse>;

/** Why there was no answer: nobody reached, certificate not trusted, too slow, cut off, too large, or told to stop. */
export type OutboundReason = 'unreachable' | 'untrusted' | 'timeout' | 'cut-off' | 'too-large' | 'aborted';

export class OutboundError extends Error {
  readonly reason: OutboundReason;

  /** The message is for people: it names the host, never the path, the headers or the body. */
  constructor(reason: OutboundReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'OutboundError';
    this.reason = reason;
  }
}

const defaultTimeout = 30 * second;
const defaultMaxBytes = 1024 * 1024;

/** What the proxies are read from: HTTP_PROXY, HTTPS_PROXY, NO_PROXY and their lower-case forms. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/** The real thing, with connections that are kept and reused, through the proxies that the environment names. */
export function outboundHttp(world: World, environment: ProxyEnvironment, userAgent: string): Outbound {
  const proxyEnv = { ...environment };
  const http = new HttpAgent({ keepAlive: true, proxyEnv });
  const https = new HttpsAgent({ keepAlive: true, proxyEnv });
  return async (wanted) => {
    const ended = new AbortController();
    const { signal, timeoutMs = defaultTimeout } = wanted;
    const timer = new AbortController();
    const timedOut = world.sleep(timeoutMs, timer.signal).then(() => {
      if (!timer.signal.aborted) ended.abort('timeout');
    });
    const stop = () => ended.abort('aborted');
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted === true) stop();
    try {
      return await exchange(wanted, userAgent, { http, https }, ended.signal);
    } catch (error) {
      throw asOutboundError(error, wanted, timeoutMs, ended.signal);
    } finally {
      signal?.removeEventListener('abort', stop);
      timer.abort();
      await timedOut;
    }
  };
}

type Agents = { readonly http: HttpAgent; readonly https: HttpsAgent };

async function exchange(
  { method, url, headers, body, ca, maxBytes = defaultMaxBytes }: OutboundRequest,
  userAgent: string,
  agents: Agents,
  signal: AbortSignal,
): Promise<OutboundResponse> {
  const target = new URL(url);
  const isSecure = target.protocol === 'https:';
  if (!isSecure && target.protocol !== 'http:') throw new Error(`cannot speak ${target.protocol}`);
  const options = {
    method,
    signal,
    headers: {
      'User-Agent': userAgent,
      ...(body !== undefined && { 'Content-Length': String(Buffer.byteLength(body)) }),
      ...headers,
    },
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = isSecure
      ? httpsRequest(target, {
          ...options,
          agent: agents.https,
          ...(ca !== undefined && { ca }),
        })
      : httpRequest(target, { ...options, agent: agents.http });
    request.once('response', resolve);
    request.once('error', reject);
    request.end(body);
  });
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      response.destroy();
      throw new OutboundError('too-large', `${target.host} sent more than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(
      Object.entries(response.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')]),
    ),
    body: Buffer.concat(chunks),
  };
}

function asOutboundError(
  error: unknown,
  { url }: OutboundRequest,
  timeoutMs: number,
  ended: AbortSignal,
): OutboundError {
  if (error instanceof OutboundError) return error;
  const { host } = new URL(url);
  if (ended.reason === 'timeout') {
    return new OutboundError('timeout', `${host} did not answer within ${timeoutMs / 1000} s`, error);
  }
  if (ended.aborted) return new OutboundError('aborted', `the request to ${host} was given up`, error);
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (isCertificateTrouble(code)) {
    return new OutboundError('untrusted', `the certificate of ${host} is not trusted: ${message}`, error);
  }
  if (['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'].includes(code) || code.startsWith('HPE_')) {
    return new OutboundError('cut-off', `${host} cut the connection off: ${message}`, error);
  }
  return new OutboundError('unreachable', `${host} cannot be reached: ${message}`, error);
}

function isCertificateTrouble(code: string): boolean {
  return /^(ERR_TLS_CERT|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_CA|ERR_SSL_)/.test(
    code,
  );
}
