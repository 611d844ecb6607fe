/**
 * Holds a request until there is a new version of a certificate. It is then answered as if it had just arrived: rights,
 * version and record are those of that moment.
 */
import type { ServerResponse } from 'node:http';
import { minute, second } from '../../base/duration.ts';
import type { VersionWait, WaitEnd } from '../../domain/versions/version-waits.ts';
import type { RequestedWait } from '../request/reply.ts';
import type { RequestContext } from '../request/request-log.ts';
import type { ServerContext } from '../request/server-context.ts';
import { setHeld } from './connection-limits.ts';

/** Whether to answer the request again, or else the headers that the prepared response gets in addition. */
export type AfterWait =
  | { readonly again: true }
  | { readonly again: false; readonly headers: Readonly<Record<string, string>> };

const timeIsOver: AfterWait = { again: false, headers: {} };

/** When to ask again, in seconds: after a request that was not allowed to wait, and after a stop. */
const tooManyWait: AfterWait = { again: false, headers: { 'Retry-After': String(minute / second) } };
const stopped: AfterWait = { again: false, headers: { 'Retry-After': '5' } };

/**
 * Waits as long as the request asks for. `generation` is that of the database from before the request was answered:
 * newer changes end the wait.
 */
export function waitInTurn(
  { vault: { world }, waits }: Pick<ServerContext, 'vault' | 'waits'>,
  exchange: RequestContext & { readonly response: ServerResponse; readonly stopping: AbortSignal },
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
  if (!waits.begin(wait)) return Promise.resolve(exchange.stopping.aborted ? stopped : tooManyWait);
  setHeld(request.socket, true);
  response.once('close', gone);
  return promise;
}
