/**
 * One request at a time: what a client sends ahead of its answers stays unread in the socket, where it costs the kernel
 * at most a buffer, and is parsed when the answer before it has been handed to the kernel. Node's parser would take a whole
 * packet at once, up to thousands of requests, and keep all their answers.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { second } from '../../base/duration.ts';
import { type NextBytes, nextBytes, openAnswers } from './connection-turns.ts';
import { doInFairTurn } from './fair-turns.ts';

/** No request is shorter, so that a run of line ends is not taken in thousands of pieces. */
const shortestRequest = 14;

/** In a body empty lines mean nothing; a piece that ends behind it holds few requests, and they wait. */
const shortestBodyPiece = 256;

/** How long a client that has said its last word waits for an answer that is being made. */
const patience = second;

/** What goes on with a connection that was held back. */
const releases = new WeakMap<Socket, () => void>();

/**
 * For the server's event `connection` or, with TLS, `secureConnection`; to be called when node:http has its listeners on the
 * socket. Every answer that is over has to be announced by `afterAnswer`.
 */
export function takeOneByOne(server: Server, event: 'connection' | 'secureConnection'): void {
  server.on(event, (socket: Socket) => {
    // node:http reads by these two, which it has just added.
    const parse = socket.listeners('data').at(-1) as Parse;
    const end = socket.listeners('end').at(-1) as () => void;
    let isHeld = false;
    const release = () => {
      if (!isHeld || socket.writableNeedDrain || nextBytes(socket) === 'none') return;
      isHeld = false;
      socket.resume();
    };
    socket
      .on('data', (bytes: Buffer) => {
        if (takeBytes(socket, bytes, parse)) isHeld = true;
      })
      .off('data', parse)
      .on('end', () => endInTurn(socket, end))
      .off('end', end)
      .on('drain', release);
    releases.set(socket, release);
  });
}

/** Goes on with what the client has sent ahead, after all others have had their turn. */
export function afterAnswer(socket: Socket): void {
  if (socket.readableLength === 0 && !socket.isPaused()) return;
  const release = releases.get(socket);
  if (release !== undefined) doInFairTurn(release);
}

type Parse = (bytes: Buffer) => void;

/** Parses what is in turn and leaves the rest in the socket. Whether it has to wait for an answer. */
function takeBytes(socket: Socket, bytes: Buffer, parse: Parse): boolean {
  let left = bytes;
  for (;;) {
    const next = nextBytes(socket);
    if (next === 'nothing more') return false;
    const isHeld = next === 'none' || socket.writableNeedDrain;
    // Where the reader of a body has no room, node:http has paused the socket, and resumes it.
    if (isHeld || socket.isPaused()) {
      socket.pause();
      socket.unshift(left);
      return isHeld;
    }
    const size = pieceOf(left, next);
    if (size === left.length) {
      parse(left);
      return false;
    }
    parse(left.subarray(0, size));
    left = left.subarray(size);
  }
}

/** How many bytes hold the end of one request's headers at most: they end with an empty line (RFC 9112 §2.1). */
function pieceOf(bytes: Buffer, next: NextBytes): number {
  const at = bytes.indexOf('\n\r\n', next === 'body' ? shortestBodyPiece : shortestRequest, 'latin1');
  return at === -1 ? bytes.length : at + 3;
}

/** Node closes a connection whose client has closed its side, which would take back an answer that is being made. */
function endInTurn(socket: Socket, end: () => void): void {
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
