/**
 * Reads one request at a time: pipelined requests stay in the socket, where they cost the kernel at most a buffer, and
 * are parsed after the previous response was passed to the kernel. Node's parser would process a complete packet with
 * up to thousands of requests, and buffer all their responses.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { second } from '../../base/duration.ts';
import { doInFairTurn } from '../../base/fair-turns.ts';
import {
  isInChunks,
  isSending,
  type NextBytes,
  nextBytes,
  openAnswers,
  takeBody,
} from './connection-turns.ts';
import { closeLingering, isLingering } from './lingering-close.ts';

/** The shortest possible request, so that a run of line breaks is not split into thousands of pieces. */
const shortestRequest = 14;

/** In a body, empty lines have no meaning; a piece that ends after one contains few requests, and they wait. */
const shortestBodyPiece = 256;

/**
 * Bytes of a body in chunks that are parsed per turn of the event loop: each chunk, of one byte at least, is an event.
 */
const largestPieceOfChunks = 4096;

/** How long to wait for a response in progress after the client has closed its side. */
const patience = second;

/** How the data of a connection is read. The listeners are shared: closures of each connection would take memory. */
type Reader = {
  /** The listeners of node:http. */
  readonly parse: Parse;
  readonly end: () => void;
  /** The method of the socket, which its prototype has. */
  readonly destroySoon: () => void;
  /** Paused until the response in progress was passed to the kernel. */
  isHeld: boolean;
  /** Resumes it in its turn; created when first needed. */
  release?: () => void;
};

const readers = new WeakMap<Socket, Reader>();

/**
 * For the event `connection` or, with TLS, `secureConnection`; call it after node:http has registered its listeners on
 * the socket. Every finished response must be announced with `afterAnswer`.
 */
export function takeOneByOne(server: Server, event: 'connection' | 'secureConnection'): void {
  server.on(event, (socket: Socket) => {
    // node:http reads with these two listeners, which it has just added.
    const parse = socket.listeners('data').at(-1) as Parse;
    const end = socket.listeners('end').at(-1) as () => void;
    readers.set(socket, { parse, end, destroySoon: socket.destroySoon, isHeld: false });
    socket.on('data', takeData).off('data', parse).on('end', takeEnd).off('end', end).on('drain', drained);
    socket.destroySoon = destroyAfterRequest;
  });
  server.prependListener('request', (request: IncomingMessage) => request.on('resume', resumed));
}

function takeData(this: Socket, bytes: Buffer): void {
  const reader = readers.get(this);
  if (reader !== undefined && takeBytes(this, bytes, reader.parse)) reader.isHeld = true;
}

function takeEnd(this: Socket): void {
  const reader = readers.get(this);
  if (reader !== undefined) endInTurn(this, reader.end);
}

function drained(this: Socket): void {
  release(this);
}

function resumed(this: IncomingMessage): void {
  release(this.socket);
}

/** Resumes a connection that is held, if it no longer has to be. */
function release(socket: Socket): void {
  const reader = readers.get(socket);
  if (!reader?.isHeld || socket.writableNeedDrain || nextBytes(socket) === 'none') return;
  reader.isHeld = false;
  socket.resume();
}

/**
 * node:http calls `destroySoon` after the last response of a connection, which would close it with unread data if the
 * client is still sending its request.
 */
function destroyAfterRequest(this: Socket): void {
  if (isSending(this)) closeLingering(this);
  else readers.get(this)?.destroySoon.call(this);
}

/** Continues with pipelined data, after other connections had their turn. */
export function afterAnswer(socket: Socket): void {
  if (socket.readableLength === 0 && !socket.isPaused()) return;
  const reader = readers.get(socket);
  if (reader === undefined) return;
  reader.release ??= () => release(socket);
  doInFairTurn(reader.release);
}

/** Connections that wait until others had their turn; the reader of a body would resume them earlier. */
const resting = new WeakSet<Socket>();

function rest(socket: Socket): void {
  resting.add(socket);
  doInFairTurn(() => {
    resting.delete(socket);
    release(socket);
  });
}

type Parse = (bytes: Buffer) => void;

/** Parses what may be parsed and leaves the rest in the socket. Returns whether to wait for a response. */
function takeBytes(socket: Socket, bytes: Buffer, parse: Parse): boolean {
  let left = bytes;
  for (;;) {
    const next = nextBytes(socket);
    if (next === 'unwanted') closeLingering(socket);
    if (next === 'nothing more' || next === 'unwanted') return false;
    const isHeld = next === 'none' || socket.writableNeedDrain || resting.has(socket);
    // If the reader of a body has no room, node:http has paused the socket, and resumes it.
    if (isHeld || socket.isPaused()) {
      socket.pause();
      socket.unshift(left);
      return isHeld;
    }
    const inChunks = next === 'body' && isInChunks(socket);
    const most = inChunks ? largestPieceOfChunks : left.length;
    const piece = Math.min(most, pieceOf(left, next));
    const size = next === 'body' ? takeBody(socket, piece) : piece;
    if (size === left.length) {
      parse(left);
      return false;
    }
    parse(left.subarray(0, size));
    left = left.subarray(size);
    if (inChunks) rest(socket);
  }
}

/** How many bytes contain at most the end of one request's headers, which is an empty line (RFC 9112 §2.1). */
function pieceOf(bytes: Buffer, next: NextBytes): number {
  const at = bytes.indexOf('\n\r\n', next === 'body' ? shortestBodyPiece : shortestRequest, 'latin1');
  return at === -1 ? bytes.length : at + 3;
}

/** Node closes a connection whose client has closed its side, which would discard a response in progress. */
function endInTurn(socket: Socket, end: () => void): void {
  if (isLingering(socket)) return;
  const last = openAnswers(socket).at(-1);
  if (last === undefined) {
    end();
    return;
  }
  const late = setTimeout(end, patience);
  last.once('close', () => {
    clearTimeout(late);
    end();
  });
}
