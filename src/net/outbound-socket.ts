/** TCP connections of protocols whose libraries would resolve names themselves: made here, so that the guard decides. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { OutboundGuard } from './outbound-guard.ts';

/**
 * A connected socket. Rejects with OutboundRefusal where the guard says no, with the system's error, and when `signal` is
 * aborted before.
 */
export async function outboundSocket(
  guard: OutboundGuard,
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<Socket> {
  signal.throwIfAborted();
  const socket = connect(guard.target(host, port));
  try {
    await once(socket, 'connect', { signal });
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}
