/**
 * TCP connections for protocols whose libraries would resolve names themselves; created here so that the guard applies.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { OutboundGuard } from './outbound-guard.ts';

/**
 * A connected socket. Rejects with OutboundRefusal if the guard refuses the address, with the error of the system, or
 * when `signal` is aborted.
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
