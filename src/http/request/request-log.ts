/**
 * The log line of each request: who requested what, the result, and the duration. Paths, queries, headers and bodies
 * are left out, because clients put secrets there.
 */
import type { IncomingMessage } from 'node:http';
import type { Log } from '../../base/log.ts';
import { addressOf } from './base-url.ts';
import type { ServerContext } from './server-context.ts';

/** What becomes known about a request while it is processed. */
export type RequestContext = {
  readonly request: IncomingMessage;
  readonly requestId: string;
  /** UTC milliseconds. */
  readonly receivedAt: number;
  /** The actor, as in the audit log; undefined until authenticated. */
  actor?: string | undefined;
  ip?: string | undefined;
  /** Set if the request waits for a new version of a certificate. */
  waiting?: Waiting;
};

/** By `World.elapsed`. */
export type Waiting = {
  readonly until: number;
  /** Milliseconds that it has waited, which are not the time of the vault. */
  waited: number;
};

/** The result of a request. */
export type RequestEnd = {
  /** The pattern of its path, or another source of the response; undefined if nothing matches the path. */
  readonly route: string | undefined;
  readonly status: number;
  /** The client disconnected before the response was complete. */
  readonly aborted: boolean;
};

/**
 * Logs and counts the request; `ms` is the time from the head of the request to the end of the response, without that
 * in which it waited for a new version.
 */
export function logRequest(context: ServerContext, requestContext: RequestContext, end: RequestEnd): void {
  const { world, log, meter } = context.vault;
  const { request, requestId, receivedAt, actor = 'anonymous', waiting } = requestContext;
  const route = end.route ?? 'none';
  const ms = world.elapsed() - receivedAt - (waiting?.waited ?? 0);
  meter.requested(route, end.status, ms);
  const line = {
    request_id: requestId,
    actor,
    ip: requestContext.ip ?? addressOf(request, context),
    ms,
    ...(waiting !== undefined && { waited_ms: waiting.waited }),
  };
  logFor(log, request.method, route, end.status).info(
    end.aborted ? { ...line, aborted: true } : line,
    'request',
  );
}

/** A cached log with these fields, and those with more fields. */
type Branch = { log?: Log; readonly next: Map<string | number | undefined, Branch> };

/** By method, route and status, which repeat in many lines and are serialized once. */
const logs = new WeakMap<Log, Branch>();

function logFor(log: Log, method: string | undefined, route: string, status: number): Log {
  let branch = logs.get(log);
  if (branch === undefined) {
    branch = { next: new Map() };
    logs.set(log, branch);
  }
  for (const part of [method, route, status]) branch = branchAt(branch, part);
  branch.log ??= log.with({ method, route, status });
  return branch.log;
}

function branchAt({ next }: Branch, part: string | number | undefined): Branch {
  const known = next.get(part);
  if (known !== undefined) return known;
  const branch: Branch = { next: new Map() };
  next.set(part, branch);
  return branch;
}
