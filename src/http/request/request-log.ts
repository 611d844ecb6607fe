/**
 * The line that each request has in the log, whatever became of it: who asked for what, how it ended, and how long it took. Paths,
 * queries, headers and bodies are not in it, because callers put secrets there.
 */
import type { IncomingMessage } from 'node:http';
import type { Log } from '../../base/log.ts';
import type { ServerContext } from '../server/server-context.ts';
import { addressOf } from './base-url.ts';

/** What is learnt of a request on the way. */
export type RequestContext = {
  readonly request: IncomingMessage;
  readonly requestId: string;
  /** UTC milliseconds. */
  readonly receivedAt: number;
  /** As the audit log calls them; undefined while nobody is known. */
  actor?: string | undefined;
  ip?: string | undefined;
};

/** How it ended. */
export type RequestEnd = {
  /** The pattern of its path, or what else the answer came from; undefined where there was nothing under this path. */
  readonly route: string | undefined;
  readonly status: number;
  /** The client had gone before the answer was whole. */
  readonly aborted: boolean;
};

/** Writes the line, and counts the request; `ms` is the time from the request's head to the end of its answer. */
export function logRequest(context: ServerContext, story: RequestContext, end: RequestEnd): void {
  const { world, log, meter } = context.vault;
  const { request, requestId, receivedAt, actor = 'anonymous' } = story;
  const route = end.route ?? 'none';
  const ms = world.now() - receivedAt;
  meter.requested(route, end.status, ms);
  const line = {
    request_id: requestId,
    actor,
    ip: story.ip ?? addressOf(request, context),
    ms,
  };
  logFor(log, request.method, route, end.status).info(
    end.aborted ? { ...line, aborted: true } : line,
    'request',
  );
}

/** A log that has what leads to it in each line, and those that have more. */
type Branch = { log?: Log; readonly next: Map<string | number | undefined, Branch> };

/** By method, route and status, which are the same in many lines and made into text once. */
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
