/** DNS over TCP (RFC 7766): one connection, one request, one answer. */
import { connect } from 'node:net';
import { withDeadline } from '../../base/deadline.ts';
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';
import { type GuardedTarget, type OutboundGuard, OutboundRefusal } from '../../net/outbound-guard.ts';
import { DnsProviderError } from '../dns-provider.ts';

export type DnsServer = { readonly host: string; readonly port: number };

/**
 * Sends a message and gives the one that comes back, both without their length. Throws DnsProviderError where the server
 * cannot be reached or may not be, cuts the connection off, or takes more than 15 seconds for everything, and when `signal`
 * is aborted.
 */
export async function tcpExchange(
  { world, guard }: { readonly world: Pick<World, 'sleep'>; readonly guard: OutboundGuard },
  { host, port }: DnsServer,
  message: Buffer,
  signal: AbortSignal,
): Promise<Buffer> {
  const label = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  return withDeadline(world, 15 * second, signal, async (deadline) => {
    const target = guardedTarget(guard, { host, port });
    const socket = connect({ ...target, signal: deadline.signal });
    try {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(message.length);
      socket.write(Buffer.concat([length, message]));
      let received = Buffer.alloc(0);
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        received = Buffer.concat([received, chunk]);
        const end = received.length < 2 ? Number.POSITIVE_INFINITY : 2 + received.readUInt16BE(0);
        if (received.length >= end) return received.subarray(2, end);
      }
      throw new DnsProviderError(`${label} closed the connection before it answered`);
    } catch (error) {
      if (error instanceof DnsProviderError) throw error;
      if (error instanceof OutboundRefusal) throw new DnsProviderError(error.message, { cause: error });
      const how = deadline.ended();
      if (how === 'timeout') throw new DnsProviderError(`${label} did not answer within 15 s`);
      if (how === 'aborted') throw new DnsProviderError(`the request to ${label} was canceled`);
      const { code, message: words } = error as NodeJS.ErrnoException;
      const isCut = code === 'ECONNRESET' || code === 'EPIPE';
      throw new DnsProviderError(
        isCut ? `${label} closed the connection before it answered` : `cannot connect to ${label}: ${words}`,
        { cause: error },
      );
    } finally {
      socket.destroy();
    }
  });
}

function guardedTarget(guard: OutboundGuard, { host, port }: DnsServer): GuardedTarget {
  try {
    return guard.target(host, port);
  } catch (error) {
    if (error instanceof OutboundRefusal) throw new DnsProviderError(error.message, { cause: error });
    throw error;
  }
}
