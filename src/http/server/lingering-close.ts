/**
 * Closes connections whose clients may still be sending. Closing one with unread data would discard the response
 * (RFC 9112 §9.6), and parsing that data would cost more than sending it.
 */
import type { Duplex } from 'node:stream';
import { second } from '../../base/duration.ts';

/** How long to wait for the client to close its side. */
const patience = 5 * second;

/** Bytes that are dropped meanwhile, which is more than any request needs. */
const maxDropped = 16 * 1_048_576;

/** How long a response waits for the end of a body that nothing reads. */
const restPatience = second;

/** Resolves when `begin` has called its argument, or after the time that a client gets to end a body. */
export function withinPatience(begin: (resolve: () => void) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const late = setTimeout(resolve, restPatience);
  begin(resolve);
  return promise.finally(() => clearTimeout(late));
}

const lingering = new WeakSet<Duplex>();

/** Whether the connection is being closed: what it receives must not be parsed. */
export function isLingering(socket: Duplex): boolean {
  return lingering.has(socket);
}

/** Closes the sending side after `last`, and the other one as soon as the client closes it or wastes its patience. */
export function closeLingering(socket: Duplex, last = ''): void {
  lingering.add(socket);
  let left = maxDropped;
  const late = setTimeout(() => socket.destroy(), patience);
  const destroyIfDone = () => {
    if (socket.readableEnded && socket.writableFinished) socket.destroy();
  };
  socket
    .on('data', ({ length }: Buffer) => {
      left -= length;
      if (left < 0) socket.destroy();
    })
    .once('end', destroyIfDone)
    .once('close', () => clearTimeout(late))
    .resume()
    .end(last, destroyIfDone);
}
