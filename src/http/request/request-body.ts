/**
 * The JSON body of a request: read only after the caller was admitted, within a size, and refused with a sentence that
 * shows nothing of it, since bodies carry passwords and keys.
 */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../../base/problem.ts';

/** Where a route says nothing else. */
export const usualBodyLimit = 1_048_576;

/** Where the engine does not say where JSON is broken, finding it parses the text a dozen times; longer ones are not searched. */
const longestSearched = 16_384;

/**
 * What the JSON in the body stands for. Throws `invalid_request` for another content type, encoding or malformed JSON,
 * and `payload_too_large` for more than `limit` bytes, without waiting for the rest.
 */
export async function readJsonBody(request: IncomingMessage, limit: number): Promise<unknown> {
  const { headers } = request;
  if (!/^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i.test(headers['content-type'] ?? '')) {
    throw new Problem('invalid_request', {
      detail: 'The body must be JSON.',
      hint: 'Send it with "Content-Type: application/json".',
    });
  }
  if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity') {
    throw new Problem('invalid_request', { detail: 'The body must not be compressed.' });
  }
  if (Number(headers['content-length'] ?? 0) > limit) throw tooLarge(limit);
  return parseJson(decode(await readBytes(request, limit)));
}

function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  if (request.closed) reject(cutOff());
  const chunks: Buffer[] = [];
  let size = 0;
  const take = (chunk: Buffer) => {
    size += chunk.length;
    if (size <= limit) {
      chunks.push(chunk);
      return;
    }
    // The rest is let go, so that the connection can carry the answer.
    request.off('data', take).resume();
    reject(tooLarge(limit));
  };
  request
    .on('data', take)
    .once('end', () => resolve(Buffer.concat(chunks)))
    .once('error', (cause) => reject(cutOff(cause)))
    .once('close', () => reject(cutOff()));
  return promise;
}

function cutOff(cause?: unknown): Problem {
  return new Problem('invalid_request', { detail: 'The body is incomplete.', cause });
}

function tooLarge(limit: number): Problem {
  const size = limit >= 1_048_576 ? `${Math.floor(limit / 1_048_576)} MiB` : `${limit} bytes`;
  return new Problem('payload_too_large', { detail: `The body is larger than ${size}.` });
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new Problem('invalid_request', { detail: 'The body is not UTF-8.', cause });
  }
}

function parseJson(text: string): unknown {
  if (text.trim() === '')
    throw new Problem('invalid_request', { detail: 'The body is empty; it must be JSON.' });
  try {
    return JSON.parse(text);
  } catch (error) {
    // The engine's message quotes the text, and that may be a secret.
    const at = positionIn(error) ?? (text.length > longestSearched ? undefined : brokenAt(text));
    const where = at === undefined ? '' : ` at ${placeOf(text, at)}`;
    throw new Problem('invalid_request', { detail: `The body is not valid JSON${where}.` });
  }
}

/** The index of the first character that cannot be there: the longest beginning that could still become JSON ends there. */
function brokenAt(text: string): number {
  let good = 0;
  let bad = text.length;
  if (couldGoOn(text)) return text.length;
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1;
    if (couldGoOn(text.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

/** Whether the text is JSON, or is refused for nothing but its end. */
function couldGoOn(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const at = positionIn(error);
    return at === undefined ? (error as Error).message.startsWith('Unexpected end') : at >= text.length;
  }
}

/** Where the engine says that the text is broken, which it does for some errors only. */
function positionIn(error: unknown): number | undefined {
  const at = / at position (\d+)/.exec((error as Error).message)?.[1];
  return at === undefined ? undefined : Number(at);
}

function placeOf(text: string, index: number): string {
  const before = text.slice(0, index).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
