/**
 * Reads DER (X.690) strictly, in time linear in the bytes: definite and shortest lengths, tags of one byte, nothing
 * after the end. For what OpenSSL has no reader in Node, such as certificate signing requests.
 */

/** The bytes are not what the caller expects; the message is a clause such as `ends too early`. */
export class DerError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DerError';
  }
}

export type DerValue = {
  readonly tag: number;
  readonly content: Buffer;
  /** With tag and length. */
  readonly whole: Buffer;
};

/** The tags that requests contain (X.680 §8.4). */
export const derTags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  sequence: 0x30,
  set: 0x31,
} as const;

/** The most length bytes that are read: four gigabytes. */
const maxLengthBytes = 4;

/** The values in some bytes, one after the other. All methods throw DerError. */
export class DerReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isDone(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** The tag of the next value; undefined at the end. */
  get nextTag(): number | undefined {
    return this.#bytes[this.#at];
  }

  next(): DerValue {
    const start = this.#at;
    const tag = this.#byte();
    if ((tag & 0x1f) === 0x1f) throw new DerError('has a tag of several bytes');
    const length = this.#length();
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new DerError('ends too early');
    const content = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return { tag, content, whole: this.#bytes.subarray(start, end) };
  }

  /** The next value, which must have this tag. */
  take(tag: number): DerValue {
    const value = this.next();
    if (value.tag === tag) return value;
    throw new DerError(`has tag 0x${value.tag.toString(16)} in place of 0x${tag.toString(16)}`);
  }

  /** A reader of the members of the next value, which must have this tag. */
  enter(tag: number): DerReader {
    return new DerReader(this.take(tag).content);
  }

  /** Throws unless everything was read. */
  end(): void {
    if (this.isDone) return;
    const rest = this.#bytes.length - this.#at;
    throw new DerError(`has ${rest} ${rest === 1 ? 'byte' : 'bytes'} after its end`);
  }

  #length(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    const count = first & 0x7f;
    if (count === 0 || count > maxLengthBytes) throw new DerError('has a length that DER does not allow');
    let length = 0;
    for (let left = count; left > 0; left -= 1) length = length * 256 + this.#byte();
    if (length < 0x80 || length < 256 ** (count - 1))
      throw new DerError('has a length that DER does not allow');
    return length;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new DerError('ends too early');
    this.#at += 1;
    return byte;
  }
}

/**
 * The content of an object identifier in dotted notation, for messages; a long or damaged one as hexadecimal digits.
 */
export function dottedIdentifier(content: Buffer): string {
  const last = content.at(-1);
  if (last === undefined || last >= 0x80 || content.length > 32)
    return content.subarray(0, 32).toString('hex');
  const arcs: number[] = [];
  let arc = 0;
  for (const byte of content) {
    arc = arc * 128 + (byte & 0x7f);
    if (byte >= 0x80) continue;
    if (arcs.length === 0)
      arcs.push(Math.min(2, Math.floor(arc / 40)), arc - 40 * Math.min(2, Math.floor(arc / 40)));
    else arcs.push(arc);
    arc = 0;
  }
  return arcs.join('.');
}
