/** Processes one request: finds the route, checks rights and input, runs the handler, and handles errors. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { z } from 'zod';
import { commandLinePreference, Problem, type ProblemCode } from '../../base/problem.ts';
import { StorageError } from '../../base/storage-error.ts';
import { parseInput } from '../../domain/inputs.ts';
import { type AuthorizedRequest, authorizeRequest } from '../auth/access.ts';
import { handleApproved } from '../auth/second-approval.ts';
import { noQuery } from '../openapi/schemas.ts';
import {
  goneSignal,
  problemReply,
  problemReplyForCommands,
  type Reply,
  type StreamedReply,
  type WholeReply,
  writeReply,
  writeStream,
} from '../request/reply.ts';
import { defaultBodyLimit, readBody } from '../request/request-body.ts';
import { logRequest, type RequestContext } from '../request/request-log.ts';
import { pathOf, queryTextOf } from '../request/request-target.ts';
import type { Call, Method, Route } from '../request/route.ts';
import type { FoundRoutes } from '../request/route-table.ts';
import type { ServerContext } from '../request/server-context.ts';
import { restInChunks } from './connection-turns.ts';
import { holdRequest, isWaiting } from './version-wait.ts';

/** A received request and its context. */
export type Exchange = RequestContext & {
  readonly response: ServerResponse;
  /** Aborted when the server begins to stop. */
  readonly stopping: AbortSignal;
  /** Security headers of this listener's responses. */
  readonly security: Readonly<Record<string, string>>;
};

type Fail = (error: unknown, exchange: Exchange) => void;

/**
 * Responds to a request for the routes of its path, after the wait that its reply asks for; `last` is the reply if that
 * wait is over. Calls `fail` if the response could not be written.
 */
export function dispatch(
  context: ServerContext,
  found: FoundRoutes,
  exchange: Exchange,
  fail: Fail,
  last?: WholeReply,
): void {
  const { generation } = context.vault.freshness;
  const send = (reply: Reply) => {
    const whole = completed(context, found, exchange, reply);
    const route = found.routes.path;
    return 'stream' in whole
      ? stream(context, exchange, whole, route)
      : answer(context, exchange, whole, route);
  };
  const resume = (reply?: WholeReply) => dispatch(context, found, exchange, fail, reply);
  (last === undefined ? handle(context, found, exchange) : Promise.resolve<Reply>(last))
    .then(
      (reply) => (isWaiting(reply) ? holdRequest(context, exchange, reply, generation, resume) : send(reply)),
      (error: unknown) => send(failureReply(context, found, exchange, error)),
    )
    .catch((error: unknown) => fail(error, exchange));
}

/** The reply with what its protocol adds to each. */
function completed(
  context: ServerContext,
  { routes: { protocol }, params }: FoundRoutes,
  { request }: Exchange,
  reply: Reply,
): Reply {
  return protocol === undefined || 'stream' in reply
    ? reply
    : protocol.complete(reply, { context, request, params });
}

/** Writes a stream until it ends. */
async function stream(
  context: ServerContext,
  exchange: Exchange,
  reply: StreamedReply,
  route: string,
): Promise<void> {
  const { request, response, requestId, stopping, security } = exchange;
  let isWhole = false;
  try {
    isWhole = await writeStream(request, response, requestId, reply, stopping, security);
  } catch (error) {
    context.vault.log.error({ err: error, request_id: requestId }, 'response stream failed');
  }
  logRequest(context, exchange, { route, status: reply.status, aborted: !isWhole });
}

/** Responds with a file of the console, or something else outside the routes; `route` names it in the log. */
export function show(context: ServerContext, exchange: Exchange, reply: WholeReply, route: string): void {
  answer(context, exchange, reply, route);
}

/** Responds with a problem if no route was found. */
export function refuse(context: ServerContext, exchange: Exchange, code: ProblemCode): void {
  answer(context, exchange, problemReply(new Problem(code)), undefined);
}

function answer(
  context: ServerContext,
  exchange: Exchange,
  reply: WholeReply,
  route: string | undefined,
): void {
  const { request, response, requestId, security } = exchange;
  const write = () => {
    const aborted = response.closed;
    writeReply(request, response, requestId, reply, security);
    logRequest(context, exchange, { route, status: reply.status, aborted });
  };
  const rest = restInChunks(request);
  if (rest === undefined) write();
  else void rest.then(write);
}

function handle(context: ServerContext, found: FoundRoutes, exchange: Exchange): Promise<Reply> {
  const { method } = exchange.request;
  const { byMethod } = found.routes;
  const route = byMethod.get((method === 'HEAD' ? 'GET' : method) as Method);
  if (route === undefined) return Promise.resolve(methodNotAllowed(context, found, exchange));
  return authorizeRequest(context, route, exchange, found).then((admitted) => {
    const call = callOf(context, route, exchange, found, admitted);
    if (route.body === undefined) {
      // A body that nothing takes is discarded as it arrives, also while the response takes long.
      if (!exchange.request.complete) exchange.request.resume();
      return run(route, call);
    }
    return bodyOf(route, route.body, exchange.request).then((body) => run(route, { ...call, body }));
  });
}

function run(route: Route, call: Call): Reply | Promise<Reply> {
  const needsApproval = route.approval !== undefined && call.context.secondApproval;
  return needsApproval ? handleApproved(route, call) : route.handle(call);
}

/** The input of the handler; throws `invalid_request` if the query does not match the route. */
function callOf(
  context: ServerContext,
  route: Route,
  exchange: Exchange,
  { params }: FoundRoutes,
  { identity, actor, client }: AuthorizedRequest,
): Call {
  const { request, response } = exchange;
  return {
    context,
    identity,
    actor,
    params,
    query: queryOf(route, queryTextOf(request.url)),
    body: undefined,
    path: pathOf(request.url),
    target: request.url ?? '',
    baseUrl: client.baseUrl,
    ifNoneMatch: request.headers['if-none-match'],
    userAgent: request.headers['user-agent'],
    headerLines: (name) => request.headersDistinct[name] ?? [],
    isHead: request.method === 'HEAD',
    gone: () => goneSignal(response),
    nameActor: (name) => {
      exchange.actor = name;
    },
  };
}

async function bodyOf(
  { bodyLimit = defaultBodyLimit, bodyTypes, protocol }: Route,
  schema: z.ZodType,
  request: IncomingMessage,
): Promise<unknown> {
  const read = protocol?.readBody(request) ?? readBody(request, bodyLimit, bodyTypes);
  return parseInput(schema, await read);
}

function methodNotAllowed(context: ServerContext, found: FoundRoutes, { request }: Exchange): WholeReply {
  const { byMethod, protocol } = found.routes;
  const problem = new Problem('method_not_allowed');
  const names = [...byMethod.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  const Allow = names.join(', ');
  const reply = protocol?.problemReply(problem, { context, request, params: found.params });
  return reply === undefined
    ? problemReply(problem, { Allow })
    : { ...reply, headers: { ...reply.headers, Allow } };
}

/** Parameters of a query, also repeated ones: no operation has a tenth of that. */
const maxParameters = 100;

/** The parsed empty query of each route, which is the most common. */
const emptyQueries = new WeakMap<Route, unknown>();

function queryOf(route: Route, text: string): unknown {
  if (route.query === undefined) return undefined;
  if (text !== '' && route.query === noQuery)
    throw new Problem('invalid_request', { detail: 'The operation has no query parameters.' });
  if (text !== '') return parseInput(route.query, queryValues(text));
  const known = emptyQueries.get(route);
  if (known !== undefined) return known;
  const query = parseInput(route.query, {});
  emptyQueries.set(route, query);
  return query;
}

function queryValues(text: string): Record<string, string | string[]> {
  // Without a prototype, a parameter named `__proto__` is not special.
  const values: Record<string, string | string[]> = Object.create(null);
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    count += 1;
    if (count > maxParameters)
      throw new Problem('invalid_request', {
        detail: `The query has more than ${maxParameters} parameters.`,
      });
    const before = values[name];
    if (before === undefined) values[name] = value;
    else if (typeof before === 'string') values[name] = [before, value];
    else before.push(value);
  }
  return values;
}

function failureReply(
  context: ServerContext,
  { routes: { protocol }, params }: FoundRoutes,
  { request, requestId }: Exchange,
  error: unknown,
): WholeReply {
  const place = { context, request, params };
  const known = protocol?.problemReply(error, place);
  if (known !== undefined) return known;
  const problem = error instanceof Problem ? error : unexpected(context, requestId, error);
  if (request.headers.prefer === commandLinePreference) return problemReplyForCommands(problem);
  return protocol?.problemReply(problem, place) ?? problemReply(problem);
}

/** The problem of an error that the client may not see, which is logged. */
function unexpected({ vault: { log } }: ServerContext, requestId: string, error: unknown): Problem {
  const code = error instanceof StorageError ? 'unavailable' : 'internal';
  log.error({ err: error, request_id: requestId }, `request failed: ${code}`);
  return new Problem(code);
}
