/**
 * Reads the first bytes of a TLS connection before OpenSSL does: OpenSSL selects a certificate before it reports the
 * client's protocol, and the certificate for acme-tls/1 must not be shown to other clients.
 */
import type { Socket } from 'node:net';

/** A ClientHello has about 2 KiB, including its records. */
const maxHelloSize = 16_384;
const maxRecords = 8;

/** Types of records, messages and extensions (RFC 8446 §5.1, §4, §4.2). */
const handshake = 22;
const clientHello = 1;
const applicationProtocols = 16;

/**
 * The protocols that the client offers (RFC 7301 §3.1), empty if none; `incomplete` if more of the ClientHello must be
 * read, undefined if it is invalid.
 */
export function offeredProtocols(bytes: Buffer): readonly string[] | 'incomplete' | undefined {
  try {
    const message = messageIn(bytes);
    return message === 'incomplete' ? message : protocolsIn(message);
  } catch (error) {
    // A length that exceeds its frame.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** How a connection begins: a ClientHello with its protocols, other data, or nothing. */
export type Opening =
  | { readonly kind: 'hello'; readonly protocols: readonly string[] }
  | { readonly kind: 'other'; readonly bytes: Buffer }
  | { readonly kind: 'ended' };

/**
 * Waits for the complete ClientHello, or for data that cannot be one. The bytes of a ClientHello stay in the socket for
 * the TLS server. The caller limits the time.
 */
export function readOpening(socket: Socket): Promise<Opening> {
  const { promise, resolve } = Promise.withResolvers<Opening>();
  let seen = Buffer.alloc(0);
  const settle = (opening: Opening) => {
    socket.off('readable', look).off('close', end).off('end', end);
    if (opening.kind === 'hello') socket.unshift(seen);
    resolve(opening);
  };
  const end = () => settle({ kind: 'ended' });
  const look = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = Buffer.concat([seen, chunk]);
    const protocols = offeredProtocols(seen);
    if (protocols === undefined || (protocols === 'incomplete' && seen.length > maxHelloSize))
      settle({ kind: 'other', bytes: seen });
    else if (protocols !== 'incomplete') settle({ kind: 'hello', protocols });
  };
  socket.on('readable', look).once('close', end).once('end', end);
  return promise;
}

/** The body of the ClientHello, which may be spread over several records. */
function messageIn(bytes: Buffer): Buffer | 'incomplete' {
  const fragments: Buffer[] = [];
  const records = new Frame(bytes);
  while (fragments.length <= maxRecords) {
    const message = Buffer.concat(fragments);
    if (message.length > 0 && message[0] !== clientHello) throw new RangeError('another message');
    if (message.length >= 4 && message.length >= 4 + message.readUIntBE(1, 3)) {
      return message.subarray(4, 4 + message.readUIntBE(1, 3));
    }
    if (records.left > 0 && records.peek() !== handshake) throw new RangeError('another kind of record');
    if (records.left < 5 || records.left < 5 + bytes.readUInt16BE(records.at + 3)) return 'incomplete';
    records.skip(3);
    fragments.push(records.block(2));
  }
  throw new RangeError('too many records');
}

/** RFC 8446 §4.1.2. */
function protocolsIn(message: Buffer): readonly string[] {
  const hello = new Frame(message);
  hello.skip(2 + 32);
  hello.block(1);
  hello.block(2);
  hello.block(1);
  const extensions = new Frame(hello.left === 0 ? Buffer.alloc(0) : hello.block(2));
  while (extensions.left > 0) {
    const type = extensions.number(2);
    const content = extensions.block(2);
    if (type !== applicationProtocols) continue;
    const names = new Frame(new Frame(content).block(2));
    const protocols: string[] = [];
    while (names.left > 0) protocols.push(names.block(1).toString('latin1'));
    return protocols;
  }
  return [];
}

/** Reads numbers and blocks in sequence. Throws RangeError at the end of its bytes. */
class Frame {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get at(): number {
    return this.#at;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  peek(): number {
    return this.#bytes.readUInt8(this.#at);
  }

  skip(size: number): Buffer {
    if (size > this.left) throw new RangeError('beyond the end');
    this.#at += size;
    return this.#bytes.subarray(this.#at - size, this.#at);
  }

  number(size: number): number {
    return this.skip(size).readUIntBE(0, size);
  }

  /** A block preceded by its length, which has `size` bytes. */
  block(size: number): Buffer {
    return this.skip(this.number(size));
  }
}
