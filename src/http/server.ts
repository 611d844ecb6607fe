/** The HTTP server: the table of routes on tinyhttp on node:http, and how it starts and stops. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { App, type Request, type Response } from '@tinyhttp/app';
import type { ProblemCode } from '../base/problem.ts';
import { limitConnections, limitedOptions, mostHeaders } from './connection-limits.ts';
import type { ConsoleReply } from './console-routes.ts';
import { dispatch, type Exchange, groupByPath, refuse, show } from './dispatch.ts';
import { type ListenAddress, type ListenOption, listen } from './listening.ts';
import type { Route } from './route.ts';
import type { ServerContext } from './server-context.ts';
import { connectionRefusals } from './unreadable-request.ts';

export type RunningServer = {
  /** With the port that was really taken. */
  readonly url: string;
  /** Takes no more requests, lets those in flight finish, for at most `patience` milliseconds. */
  readonly stop: (patience: number) => Promise<void>;
};

const mainOption: ListenOption = { option: '--listen', example: '127.0.0.1:8080' };

/** Starts to serve the routes. Throws OperatorError, which names the option, where the address cannot be had. */
export async function startServer(
  context: ServerContext,
  routes: readonly Route[],
  address: ListenAddress,
  option: ListenOption = mainOption,
  pages: ConsoleReply = () => undefined,
): Promise<RunningServer> {
  const nextId = requestIds(context);
  const stopping = new AbortController();
  const listener = requestListener(context, { routes, pages }, nextId, stopping.signal);
  const { connectionLimits } = context;
  // Node's own refusals would carry neither a problem nor a request id, so they are made here.
  const server = createServer({ requireHostHeader: false, ...limitedOptions(connectionLimits) }, listener);
  server.on('checkExpectation', listener);
  limitConnections(server, connectionLimits, connectionRefusals(context, nextId));
  const place = await listen(server, address, option);
  server.on('error', (error) => context.vault.log.error({ err: error }, 'the server has a problem'));
  return {
    url: `http://${place}`,
    stop: async (patience) => {
      stopping.abort();
      await stop(context, server, patience);
    },
  };
}

function requestListener(
  context: ServerContext,
  { routes, pages }: { readonly routes: readonly Route[]; readonly pages: ConsoleReply },
  nextId: () => string,
  stopping: AbortSignal,
) {
  const app = new App({
    // Its extensions cost two thirds of the throughput, and replies are written by reply.ts.
    applyExtensions: (_request, _response, next) => next(),
    settings: { xPoweredBy: false },
    noMatchHandler: async (request, response) => {
      const page = pages(request);
      if (page === undefined) refuse(context, exchangeOf(request, response), 'not_found');
      else show(context, exchangeOf(request, response), page);
    },
    onError: async (error, request, response) => {
      const exchange = exchangeOf(request, response);
      context.vault.log.error(
        { err: error, request_id: exchange.requestId },
        'a request failed in the router',
      );
      refuse(context, exchange, 'internal');
    },
  });
  for (const group of groupByPath(routes)) {
    // tinyhttp awaits only functions that are declared async.
    app.all(group.path.replaceAll(/\{(\w+)\}/g, ':$1'), async (request, response) => {
      await dispatch(context, group, exchangeOf(request, response));
    });
  }
  const ids = new WeakMap<IncomingMessage, string>();
  function exchangeOf(request: IncomingMessage, response: ServerResponse): Exchange {
    return { request, response, requestId: ids.get(request) ?? '', stopping };
  }
  return (request: IncomingMessage, response: ServerResponse): void => {
    ids.set(request, nextId());
    request.url = originForm(request.url);
    const refusal = refusalOf(request);
    if (refusal === undefined) app.handler(request as Request, response as Response);
    else refuse(context, exchangeOf(request, response), refusal);
  };
}

/** The path and query of a request target; a server must take the absolute form too (RFC 9112 §3.2.2). */
function originForm(target = ''): string {
  const absolute = /^https?:\/\/[^/?#]+/i.exec(target)?.[0];
  if (absolute === undefined) return target;
  const rest = target.slice(absolute.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** What is wrong with a request that the router must not see. */
function refusalOf({ url, headers, rawHeaders, httpVersion }: IncomingMessage): ProblemCode | undefined {
  if (rawHeaders.length > 2 * mostHeaders) return 'headers_too_large';
  // RFC 9112 §3.2: HTTP/1.1 demands a host.
  if (headers.host === undefined && httpVersion === '1.1') return 'invalid_request';
  // What tinyhttp cannot decode would throw inside it, where nobody catches.
  if (!isDecodable(url)) return 'invalid_request';
  // tinyhttp takes one of two slashes away, and would serve this as another path.
  return url?.startsWith('//') ? 'not_found' : undefined;
}

function isDecodable(url: string | undefined): boolean {
  if (url === undefined || !url.startsWith('/')) return false;
  try {
    decodeURIComponent(url.split('?', 1)[0] ?? '');
    return true;
  } catch {
    // A URIError is the answer: the path is not decodable.
    return false;
  }
}

/** Ids that no two requests share, also across restarts: a random beginning and a counter. */
function requestIds({ vault: { world } }: ServerContext): () => string {
  const beginning = world.randomBytes(6).toString('hex');
  let count = 0;
  return () => {
    count += 1;
    return `${beginning}-${count.toString(36)}`;
  };
}

async function stop(
  { vault: { world, log } }: ServerContext,
  server: Server,
  patience: number,
): Promise<void> {
  const closed = new AbortController();
  const finished = new Promise<void>((resolve) => {
    server.close(() => {
      closed.abort();
      resolve();
    });
  });
  const giveUpAt = world.now() + patience;
  while (!closed.signal.aborted && world.now() < giveUpAt) {
    // A connection whose last answer has gone out is idle, and would stay open for another request.
    server.closeIdleConnections();
    await world.sleep(20, closed.signal);
  }
  if (!closed.signal.aborted) {
    log.warn({ after_ms: patience }, 'requests still in flight were cut off');
    server.closeAllConnections();
  }
  await finished;
}
