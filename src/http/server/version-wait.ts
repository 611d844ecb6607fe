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
import { setHeld } from './connection-limits.ts';

type WaitingReply = WholeReply & { readonly wait: RequestedWait };

type WaitingExchange = RequestContext & {
  readonly response: ServerResponse;
  readonly stopping: AbortSignal;
};

/** Whether to answer the request again, or else the headers that the prepared response gets in addition. */
type AfterWait =
  | { readonly again: true }
  | { readonly again: false; readonly headers: Readonly<Record<string, string>> };

const timeIsOver: AfterWait = { again: false, headers: {} };

/** In bytes: raw headers stay in memory while the request waits, and the client decides how long they are. */
export const maxHeldHeaders = 8192;

/** When to ask again, in seconds: after a request that was not allowed to wait, and after a stop. */
const tooManyWait: AfterWait = { again: false, headers: { 'Retry-After': String(minute / second) } };
const stopped: AfterWait = { again: false, headers: { 'Retry-After': '5' } };

/** Whether the request waits before this response is sent. */
export function isWaiting(reply: Reply): reply is WaitingReply {
  return 'wait' in reply && reply.wait !== undefined;
}

/**
 * The response after the wait. `again` answers the request again, and `generation` is that of the database from before
 * the request was answered: newer changes end the wait.
 */
export async function replyAfterWait(
  context: Pick<ServerContext, 'vault' | 'waits'>,
  exchange: WaitingExchange,
  first: WaitingReply,
  generation: number,
  again: () => Promise<Reply>,
): Promise<Reply> {
  // In a loop: a chain of promises would grow with each change in the vault.
  for (let reply: Reply = first, since = generation; ; ) {
    if (!isWaiting(reply)) return reply;
    const next: AfterWait = await waitInTurn(context, exchange, reply.wait, since);
    if (!next.again) {
      context.vault.meter.unchanged(reply.wait.file);
      return { ...reply, headers: { ...reply.headers, ...next.headers } };
    }
    since = context.vault.freshness.generation;
    reply = await again();
  }
}

function waitInTurn(
  { vault: { world }, waits }: Pick<ServerContext, 'vault' | 'waits'>,
  exchange: WaitingExchange,
  { name, version, seconds }: RequestedWait,
  generation: number,
): Promise<AfterWait> {
  const { response, request, actor: holder = 'anonymous' } = exchange;
  const from = world.elapsed();
  exchange.waiting ??= { until: from + seconds * second, waited: 0 };
  const { waiting } = exchange;
  if (from >= waiting.until || response.closed) return Promise.resolve(timeIsOver);
  const { promise, resolve } = Promise.withResolvers<AfterWait>();
  const end = (why: WaitEnd | 'gone') => {
    response.off('close', gone);
    setHeld(request.socket, false);
    waiting.waited += world.elapsed() - from;
    if (why === 'stopping') resolve(stopped);
    else resolve(why === 'gone' ? timeIsOver : { again: true });
  };
  const wait: VersionWait = { name, version, holder, until: waiting.until, generation, end };
  const gone = () => {
    waits.release(wait);
    end('gone');
  };
  if (sizeOf(request.rawHeaders) > maxHeldHeaders || !waits.begin(wait))
    return Promise.resolve(exchange.stopping.aborted ? stopped : tooManyWait);
  setHeld(request.socket, true);
  forgetParsed(request);
  response.once('close', gone);
  return promise;
}

function sizeOf(headers: readonly string[]): number {
  return headers.reduce((size, { length }) => size + length, 0);
}

/** Frees the parsed headers, which node:http parses again from the raw ones when they are read. */
function forgetParsed(request: { headers: unknown; headersDistinct: unknown }): void {
  request.headers = undefined;
  request.headersDistinct = undefined;
}
