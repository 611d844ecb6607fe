/**
 * The body of a request: read only after authorization, up to a size limit, and with error messages that quote
 * none of it, because bodies contain passwords and keys.
 */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../../base/problem.ts';
import { maxEntries, maxLevels } from '../../domain/inputs.ts';

/** Bytes of a body that nothing reads which are still received, so that the connection can carry another request. */
export const shortRest = 16_384;

/** The default limit, of bodies that contain neither files nor long lists. */
export const defaultBodyLimit = 65_536;

/** The limit of bodies with PEM, long lists or settings of a type. */
export const longBodyLimit = 1_048_576;

/** The members of all objects of a body together; no operation has more than some dozens. */
const maxMembers = 1000;

/** The members of all objects and the entries of all lists together; an operation with two long lists has room. */
export const maxValues = 2 * maxEntries + maxMembers;

/**
 * If the engine does not report the position of a JSON error, finding it takes a dozen parses; longer texts are not
 * searched.
 */
const maxSearchedLength = 16_384;

const quotationMark = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;

/** Types of content other than JSON, and the JSON value that their bytes stand for. */
type OtherTypes = Readonly<Record<string, (bytes: Buffer) => unknown>>;

/** The parsed JSON of the body, or the value that the body stands for. Throws like `readJsonBody`. */
export async function readBody(
  request: IncomingMessage,
  limit: number,
  types: OtherTypes = {},
): Promise<unknown> {
  const { headers } = request;
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
  const other = new Map(Object.entries(types)).get(type.trim().toLowerCase());
  if (other === undefined) return readJsonBody(request, limit, Object.keys(types));
  refuseEncodedOrLarge(request, limit);
  return other(await readBytes(request, limit));
}

/**
 * The parsed JSON of the body. Throws `invalid_request` for another content type, encoding or malformed JSON, and
 * `payload_too_large` for more than `limit` bytes, without waiting for the rest.
 */
export async function readJsonBody(
  request: IncomingMessage,
  limit: number,
  otherTypes: readonly string[] = [],
): Promise<unknown> {
  const { headers } = request;
  if (!/^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i.test(headers['content-type'] ?? '')) {
    const types = ['application/json', ...otherTypes].map((type) => `"Content-Type: ${type}"`);
    throw new Problem('invalid_request', {
      detail:
        otherTypes.length === 0
          ? 'The body must be JSON.'
          : 'The body is of a type that is not accepted here.',
      hint: `Send it with ${types.join(' or ')}.`,
    });
  }
  refuseEncodedOrLarge(request, limit);
  return parseJson(decode(await readBytes(request, limit)));
}

/**
 * The bytes of a body, of any type. Throws `payload_too_large` for more than `limit` bytes, and `invalid_request` for
 * an encoding.
 */
export async function readRawBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  refuseEncodedOrLarge(request, limit);
  return readBytes(request, limit);
}

function refuseEncodedOrLarge({ headers }: IncomingMessage, limit: number): void {
  if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity') {
    throw new Problem('invalid_request', { detail: 'The body must not be compressed.' });
  }
  if (Number(headers['content-length'] ?? 0) > limit) throw tooLarge(limit);
}

/** The buffers of the bodies that are being received. */
const arriving = new WeakMap<IncomingMessage, ArrivingBody>();

/** The memory that the body of a request occupies while it is received, in bytes. */
export function sizeOfArriving(request: IncomingMessage | undefined): number {
  return request === undefined ? 0 : (arriving.get(request)?.capacity ?? 0);
}

/** Whether a reader takes the body of a request. */
export function isBeingRead(request: IncomingMessage): boolean {
  return arriving.has(request);
}

/**
 * One buffer that grows to the limit at most: a chunk has one byte if the client likes, and an object for each costs
 * hundreds of times what was sent.
 */
class ArrivingBody {
  #bytes = Buffer.alloc(0);
  #size = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get capacity(): number {
    return this.#bytes.length;
  }

  /** False if it would exceed the limit. */
  add(chunk: Buffer): boolean {
    const size = this.#size + chunk.length;
    if (size > this.#limit) return false;
    if (size > this.#bytes.length) {
      const larger = Buffer.alloc(Math.min(this.#limit, Math.max(size, 2 * this.#bytes.length)));
      this.#bytes.copy(larger, 0, 0, this.#size);
      this.#bytes = larger;
    }
    chunk.copy(this.#bytes, this.#size);
    this.#size = size;
    return true;
  }

  received(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }
}

function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  if (request.closed) reject(cutOff());
  const body = new ArrivingBody(limit);
  arriving.set(request, body);
  const take = (chunk: Buffer) => {
    if (body.add(chunk)) return;
    // The rest is discarded, so that the connection can carry the response.
    arriving.delete(request);
    request.off('data', take).resume();
    reject(tooLarge(limit));
  };
  request
    .on('data', take)
    .once('end', () => resolve(body.received()))
    .once('error', (cause) => reject(cutOff(cause)))
    .once('close', () => reject(cutOff()));
  return promise.finally(() => arriving.delete(request));
}

function cutOff(cause?: unknown): Problem {
  return new Problem('invalid_request', { detail: 'The body is incomplete.', cause });
}

function tooLarge(limit: number): Problem {
  const size =
    limit >= 1_048_576 ? `${Math.floor(limit / 1_048_576)} MiB` : `${Math.floor(limit / 1024)} KiB`;
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
  refuseManyParts(text);
  try {
    return JSON.parse(text);
  } catch (error) {
    // The message of the engine quotes the text, which may be a secret.
    const at = positionIn(error) ?? (text.length > maxSearchedLength ? undefined : brokenAt(text));
    const where = at === undefined ? '' : ` at ${placeOf(text, at)}`;
    throw new Problem('invalid_request', { detail: `The body is not valid JSON${where}.` });
  }
}

/**
 * Throws `invalid_request` before the text is parsed: 80,000 names, or half a million numbers or nested lists, would
 * occupy the parser for up to a tenth of a second.
 */
function refuseManyParts(text: string): void {
  let members = 0;
  let values = 0;
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === quotationMark) isInString = !isInString;
    else if (isInString) at += character === backslash ? 1 : 0;
    else if (character === colon) members += 1;
    else if (character === comma) values += 1;
    // [ and {, ] and }.
    else if ((character | 0x20) === 0x7b) depth += 1;
    else if ((character | 0x20) === 0x7d) depth -= 1;
    if (members > maxMembers)
      throw new Problem('invalid_request', { detail: `The body has more than ${maxMembers} members.` });
    if (values > maxValues)
      throw new Problem('invalid_request', {
        detail: `The body has more than ${maxValues} list entries and members.`,
      });
    if (depth > maxLevels)
      throw new Problem('invalid_request', {
        detail: `The body is nested deeper than ${maxLevels} levels.`,
      });
  }
}

/** The index of the first invalid character: the end of the longest prefix that could still become JSON. */
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

/** Whether the text is JSON, or only incomplete. */
function couldGoOn(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const at = positionIn(error);
    return at === undefined ? (error as Error).message.startsWith('Unexpected end') : at >= text.length;
  }
}

/** The position of the error, which the engine reports only for some errors. */
function positionIn(error: unknown): number | undefined {
  const at = / at position (\d+)/.exec((error as Error).message)?.[1];
  return at === undefined ? undefined : Number(at);
}

function placeOf(text: string, index: number): string {
  const before = text.slice(0, index).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
