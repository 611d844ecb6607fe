/**
 * Holds a request until there is a new version of a certificate. It is then answered as if it had just arrived: rights,
 * version and record are those of that moment.
 */
import type { ServerResponse } from 'node:http';
import { minute, second } from '../../base/duration.ts';
import type { VersionWait, WaitEnd } from '../../domain/versions/version-waits.ts';
import type { Reply, RequestedWait, WholeReply } from '../request/reply.ts';
import type { RequestContext } from '../request/request-log.ts';
import type { ServerContext } from '../request/server-context.ts';
import { setHeld } from './open-connections.ts';

type WaitingReply = WholeReply & { readonly wait: RequestedWait };

type WaitingExchange = RequestContext & {
  readonly response: ServerResponse;
  readonly stopping: AbortSignal;
};

type ReplyHeaders = WholeReply['headers'];

/** In bytes: raw headers stay in memory while the request waits, and the client decides how long they are. */
export const maxHeldHeaders = 8192;

/** When to ask again, in seconds: after a request that was not allowed to wait, and after a stop. */
const tooManyWait: ReplyHeaders = { 'Retry-After': String(minute / second) };
const stopped: ReplyHeaders = { 'Retry-After': '5' };

/** Whether the request waits before this response is sent. */
export function isWaiting(reply: Reply): reply is WaitingReply {
  return 'wait' in reply && reply.wait !== undefined;
}

/**
 * Lets the request wait, and calls `resume` once: with the response, or without one to answer the request again. Few
 * objects wait with it, and no promise. `generation` is that of the database from before the request was answered:
 * newer changes end the wait.
 */
export function holdRequest(
  { vault: { world, meter }, waits }: Pick<ServerContext, 'vault' | 'waits'>,
  exchange: WaitingExchange,
  reply: WaitingReply,
  generation: number,
  resume: (last?: WholeReply) => void,
): void {
  const { response, request, actor: holder = 'anonymous' } = exchange;
  const { name, version, file, seconds } = reply.wait;
  const from = world.elapsed();
  exchange.waiting ??= { until: from + seconds * second, waited: 0 };
  const { waiting } = exchange;
  const respond = (added: ReplyHeaders) => {
    meter.unchanged(file);
    resume({ status: reply.status, headers: { ...reply.headers, ...added }, body: reply.body });
  };
  const end = (why: WaitEnd | 'gone') => {
    response.off('close', gone);
    setHeld(request.socket, false);
    waiting.waited += world.elapsed() - from;
    if (why === 'stopping') respond(stopped);
    else if (why === 'gone') respond({});
    else resume();
  };
  const wait: VersionWait = { name, version, holder, until: waiting.until, generation, end };
  const gone = () => {
    waits.release(wait);
    end('gone');
  };
  if (from >= waiting.until || response.closed) respond({});
  else if (sizeOf(request.rawHeaders) > maxHeldHeaders || !waits.begin(wait))
    respond(exchange.stopping.aborted ? stopped : tooManyWait);
  else {
    setHeld(request.socket, true);
    forgetParsed(request);
    response.on('close', gone);
  }
}

function sizeOf(headers: readonly string[]): number {
  return headers.reduce((size, { length }) => size + length, 0);
}

/** Frees the parsed headers, which node:http parses again from the raw ones when they are read. */
function forgetParsed(request: { headers: unknown; headersDistinct: unknown }): void {
  request.headers = undefined;
  request.headersDistinct = undefined;
}
