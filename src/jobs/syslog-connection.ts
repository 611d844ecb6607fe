/**
 * Connections to syslog collectors: octet counting over TCP, TLS and unix sockets (RFC 6587, RFC 5425), datagrams over
 * UDP (RFC 5426).
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, isIP, isIPv6, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export type SyslogTarget = {
  /** The URL as configured. */
  readonly url: string;
} & (
  | {
      readonly transport: 'tcp' | 'tls' | 'udp';
      readonly host: string;
      readonly port: number;
      /** For TLS: PEM, trusted in place of the public roots. */
      readonly ca?: string | undefined;
    }
  | { readonly transport: 'unix'; readonly path: string }
);

export type SyslogConnection = {
  /** Whether this is a stream (TCP, TLS, unix), which notices when the collector closes it. */
  readonly isStream: boolean;
  readonly isOpen: () => boolean;
  /** Resolves when the operating system has accepted the messages. */
  readonly send: (messages: readonly string[]) => Promise<void>;
  readonly close: () => void;
};

/** An open connection. Rejects if it fails, or when `signal` is aborted first. */
export async function openSyslog(target: SyslogTarget, signal: AbortSignal): Promise<SyslogConnection> {
  return target.transport === 'udp' ? datagrams(target) : stream(target, signal);
}

async function stream(target: SyslogTarget, signal: AbortSignal): Promise<SyslogConnection> {
  const socket = dial(target);
  let failure: Error | undefined;
  socket
    .on('error', (error) => {
      failure = error;
    })
    // Syslog has no replies: discard any data so that it does not pile up, and close when the collector closes.
    .on('data', () => undefined)
    .on('end', () => socket.destroy());
  try {
    await once(socket, target.transport === 'tls' ? 'secureConnect' : 'connect', { signal });
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return {
    isStream: true,
    isOpen: () => !socket.destroyed && socket.writable,
    close: () => socket.destroy(),
    send: async (messages) => {
      const frames = messages.map((message) => `${Buffer.byteLength(message)} ${message}`).join('');
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const closed = () => reject(failure ?? new Error('the syslog collector closed the connection'));
      socket.once('close', closed);
      if (socket.destroyed) closed();
      else socket.write(frames, (error) => (error ? reject(error) : resolve()));
      await promise.finally(() => socket.off('close', closed));
    },
  };
}

function dial(target: SyslogTarget): Socket {
  if (target.transport === 'unix') return connect({ path: target.path });
  const { transport, host, port, ca } = target;
  if (transport !== 'tls') return connect({ host, port });
  return connectTls({
    host,
    port,
    servername: isIP(host) === 0 ? host : '',
    ...(ca !== undefined && { ca }),
  });
}

function datagrams({ host, port }: { readonly host: string; readonly port: number }): SyslogConnection {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  let isOpen = true;
  const close = () => {
    if (isOpen) socket.close();
    isOpen = false;
  };
  // An ICMP error of an earlier datagram arrives here; the next delivery opens a new socket.
  socket.on('error', close);
  return {
    isStream: false,
    isOpen: () => isOpen,
    close,
    send: async (messages) => {
      for (const message of messages) {
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        socket.send(message, port, host, (error) => (error ? reject(error) : resolve()));
        await promise;
      }
    },
  };
}
