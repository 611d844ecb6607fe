/**
 * One POST request of a channel, and what its response means. Response bodies and URLs are never shown: both may hold
 * secrets.
 */
import { second } from '../base/duration.ts';
import { parseRetryAfter } from '../base/retry-after.ts';
import { OutboundError, type OutboundRequest, type ResponseHead } from '../net/outbound-http.ts';
import { type ChannelContext, ChannelError } from './channel.ts';

/** Time limit of one request, in milliseconds. */
export const httpPatience = 30 * second;

/** Only the wait that some services put into the body of a 429 response is read. */
const largestAnswer = 64 * 1024;

export type HttpDelivery = Required<Pick<OutboundRequest, 'url' | 'headers' | 'body'>> & {
  readonly ca: string | undefined;
  /** Reads the seconds to wait from a 429 response without Retry-After. */
  readonly waitOf?: (body: unknown) => unknown;
};

/** Posts the message. Any 2xx status means success (RFC 9110 §15.3). Throws ChannelError. */
export async function deliverByHttp(
  { waitOf, ...request }: HttpDelivery,
  { world, outbound }: Pick<ChannelContext, 'world' | 'outbound'>,
  signal: AbortSignal,
): Promise<undefined> {
  const limits = { timeoutMs: httpPatience, maxBytes: largestAnswer };
  let answer: ResponseHead & { readonly body?: Buffer };
  try {
    answer = await outbound({ ...request, method: 'POST', signal, ...limits });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    // If only the body was too large, the status has already arrived.
    if (error.head === undefined) throw new ChannelError(error.message, { cause: error });
    answer = error.head;
  }
  const { status, headers, body } = answer;
  const { host } = new URL(request.url);
  if (status >= 200 && status < 300) return undefined;
  if (status === 410)
    throw new ChannelError(`${host} responded with 410 Gone: the endpoint no longer accepts messages`, {
      gone: true,
    });
  const more = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  const now = world.now();
  const wait = status === 429 ? secondsIn(body, waitOf) : undefined;
  throw new ChannelError(`${host} responded with ${status}${more}`, {
    retryAfterMs: parseRetryAfter(headers['retry-after'], now) ?? parseRetryAfter(wait, now),
  });
}

function secondsIn(body: Buffer | undefined, waitOf: HttpDelivery['waitOf']): string | undefined {
  try {
    const seconds = Number(waitOf?.(JSON.parse(body?.toString('utf8') ?? '')));
    return Number.isFinite(seconds) && seconds >= 0 ? String(Math.ceil(seconds)) : undefined;
  } catch {
    // Not JSON, or JSON of another shape: the usual wait is good enough.
    return undefined;
  }
}
