/**
 * The server: the table of routes on tinyhttp over node:http or, with a certificate, node:https, and its start and
 * stop.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { App, type Request, type Response } from '@tinyhttp/app';
import type { ProblemCode } from '../../base/problem.ts';
import { type ListenAddress, type ListenOption, listen } from '../../net/listening.ts';
import type { WholeReply } from '../request/reply.ts';
import { isDecodable, originForm, pathOf } from '../request/request-target.ts';
import type { Route } from '../request/route.ts';
import { RouteTable } from '../request/route-table.ts';
import { securityHeaders, strictSecurityHeaders } from '../request/security-headers.ts';
import { createHttpsServer, type HttpsOptions } from '../tls/https-server.ts';
import { limitConnections, limitedOptions, maxHeaders } from './connection-limits.ts';
import { inTurn, takeTurn } from './connection-turns.ts';
import { dispatch, type Exchange, refuse, show } from './dispatch.ts';
import type { ListenerContext } from './listener-context.ts';
import { takeOneByOne } from './pipelining.ts';
import { connectionRefusals, refusePlain, refuseTunnel } from './unreadable-request.ts';

export type RunningServer = {
  /** With the actual port. */
  readonly url: string;
  /** Accepts no more requests, and lets those in flight finish for at most `patience` milliseconds. */
  readonly stop: (patience: number) => Promise<void>;
};

export const mainOption: ListenOption = { option: '--listen', example: '127.0.0.1:8080' };

export type ServerOptions = {
  /** The option that sets the address; default --listen. */
  readonly named?: ListenOption;
  /** The response where no route matches, and its name in the log. */
  readonly pages?: (request: IncomingMessage) => WholeReply | undefined;
  readonly pagesAre?: string;
  /** HTTPS instead of HTTP. */
  readonly tls?: HttpsOptions | undefined;
};

/** Starts serving the routes. Throws OperatorError naming the option if the address is unavailable. */
export async function startServer(
  context: ListenerContext,
  routes: readonly Route[],
  address: ListenAddress,
  options: ServerOptions = {},
): Promise<RunningServer> {
  const { named = mainOption, tls } = options;
  const nextId = requestIds(context);
  const stopping = new AbortController();
  const listener = requestListener(context, routes, options, nextId, stopping.signal);
  const { server, closeGreetings } = serverFor(context, tls, listener, nextId);
  takeOneByOne(server, tls === undefined ? 'connection' : 'secureConnection');
  // Node's own rejections would contain neither a problem nor a request id, so they are handled here.
  server.on('checkExpectation', listener);
  limitConnections(server, context.connectionLimits, connectionRefusals(context, nextId));
  server.on('connect', (_, socket) => refuseTunnel(context, nextId(), socket));
  const place = await listen(server, address, named);
  server.on('error', (error) => context.vault.log.error({ err: error }, 'server error'));
  const keeping = tls?.endpoint.keepCurrent(server as HttpsServer, stopping.signal);
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${place}`,
    stop: async (patience) => {
      stopping.abort();
      context.waits.stop();
      closeGreetings();
      await Promise.all([stop(context, server, patience), keeping]);
    },
  };
}

/** For HTTP or HTTPS. `closeGreetings` closes connections that have sent nothing yet. */
function serverFor(
  context: ListenerContext,
  tls: HttpsOptions | undefined,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
  nextId: () => string,
): { readonly server: Server | HttpsServer; readonly closeGreetings: () => void } {
  const notGreeted = () => {
    // For plain HTTP, node:http itself tracks these connections.
  };
  const options = { requireHostHeader: false, ...limitedOptions(context.connectionLimits) };
  if (tls === undefined) return { server: createServer(options, listener), closeGreetings: notGreeted };
  return createHttpsServer(context.vault, { ...tls, options }, listener, (socket, bytes) =>
    refusePlain(context, nextId(), socket, bytes),
  );
}

function requestListener(
  context: ListenerContext,
  routes: readonly Route[],
  { pages, pagesAre = 'console', tls }: ServerOptions,
  nextId: () => string,
  stopping: AbortSignal,
) {
  const table = new RouteTable(routes);
  const app = new App({
    // Its extensions cost two thirds of the throughput, and replies are written by reply.ts.
    applyExtensions: (_request, _response, next) => next(),
    settings: { xPoweredBy: false },
    // tinyhttp counts the parameters: with two it would call its own handlers next.
    noMatchHandler: (request, response, _next) => {
      const page = pages?.(request);
      const exchange = exchangeOf(request, response);
      if (page !== undefined) show(context, exchange, page, pagesAre);
      else refuse(context, exchange, 'not_found');
    },
    onError: async (error, request, response) => fail(error, exchangeOf(request, response)),
  });
  function fail(error: unknown, exchange: Exchange): void {
    const { requestId } = exchange;
    context.vault.log.error({ err: error, request_id: requestId }, 'request failed in the router');
    const { response } = exchange;
    if (!response.headersSent) refuse(context, exchange, 'internal');
    // A response that was begun cannot be replaced; one that was not ended would keep the client waiting.
    else if (!response.writableEnded) response.destroy();
  }
  function route(request: Received, response: ServerResponse): void {
    const found = table.find(pathOf(request.url));
    if (found === undefined) {
      app.handler(request as Request, response as Response);
      return;
    }
    const exchange = exchangeOf(request, response);
    dispatch(context, found, exchange, fail);
  }
  function exchangeOf(request: Received, response: ServerResponse): Exchange {
    const security = tls?.endpoint.identity.publiclyTrusted ? strictSecurityHeaders : securityHeaders;
    const { [id]: requestId = '', [receivedAt]: at = 0 } = request;
    return {
      request,
      response,
      requestId,
      receivedAt: at,
      stopping,
      security,
      actor: undefined,
      ip: undefined,
    };
  }
  return (request: Received, response: ServerResponse): void => {
    const turn = takeTurn(request, response);
    if (turn === 'over') return;
    inTurn(request, () => {
      request[id] = nextId();
      request[receivedAt] = context.vault.world.elapsed();
      request.url = originForm(request.url);
      const refusal = turn === 'ambiguous' ? 'invalid_request' : refusalOf(request);
      try {
        if (refusal === undefined) route(request, response);
        else refuse(context, exchangeOf(request, response), refusal);
      } catch (error) {
        // Uncaught, it would end the process.
        fail(error, exchangeOf(request, response));
      }
    });
  };
}

/** A request with its id and arrival time (UTC milliseconds). */
const id = Symbol('request id');
const receivedAt = Symbol('received at');
type Received = IncomingMessage & { [id]?: string; [receivedAt]?: number };

/** Why a request must not reach the router. */
function refusalOf(request: IncomingMessage): ProblemCode | undefined {
  const { url, headers, rawHeaders, httpVersion } = request;
  if (rawHeaders.length > 2 * maxHeaders) return 'headers_too_large';
  // RFC 9112 §3.2: HTTP/1.1 requires a Host header.
  if (headers.host === undefined && httpVersion === '1.1') return 'invalid_request';
  // What tinyhttp cannot decode would throw inside it, uncaught.
  if (!isDecodable(url)) return 'invalid_request';
  // tinyhttp drops one of two slashes, and would serve this as another path.
  return url?.startsWith('//') ? 'not_found' : undefined;
}

/** Unique ids, even across restarts: a random prefix and a counter. */
function requestIds({ vault: { world } }: ListenerContext): () => string {
  const beginning = `${world.randomBytes(6).toString('hex')}-`;
  let count = 0;
  return () => {
    count += 1;
    return beginning + count.toString(36);
  };
}

async function stop(
  { vault: { world, log } }: ListenerContext,
  server: Server | HttpsServer,
  patience: number,
): Promise<void> {
  const closed = new AbortController();
  const finished = new Promise<void>((resolve) => {
    server.close(() => {
      closed.abort();
      resolve();
    });
  });
  const giveUpAt = world.elapsed() + patience;
  while (!closed.signal.aborted && world.elapsed() < giveUpAt) {
    // A connection is idle after its last response, and would stay open for another request.
    server.closeIdleConnections();
    await world.sleep(20, closed.signal);
  }
  if (!closed.signal.aborted) {
    log.warn({ after_ms: patience }, 'closed connections with requests in flight');
    server.closeAllConnections();
  }
  await finished;
}
