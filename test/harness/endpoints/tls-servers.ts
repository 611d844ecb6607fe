/** TLS servers on loopback for checks of endpoints: well-behaved ones of Node, and ones that a script drives. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createSecureContext, createServer as createTlsServer, TLSSocket, type TlsOptions } from 'node:tls';
import { encodePem } from '../../../src/crypto/pem.ts';
import type { X509Issuer } from '../../../src/crypto/x509/x509-issuance.ts';

/** What a TLS server presents, in PEM. */
export type Identity = { readonly key: string; readonly cert: string };

/** The identity of a server that presents the leaf and then the others. */
export function identityOf(
  leaf: X509Issuer,
  ...others: readonly Pick<X509Issuer, 'certificate'>[]
): Identity {
  return {
    key: encodePem('PRIVATE KEY', leaf.privateKey.expose()),
    cert: [leaf, ...others].map(({ certificate }) => encodePem('CERTIFICATE', certificate)).join(''),
  };
}

export type RunningTls = {
  readonly port: number;
  /** How many clients have connected so far. */
  readonly connections: () => number;
  /** Presents something else from the next connection on. */
  readonly present: (options: TlsOptions) => void;
  /** Refuses connections from now on. */
  readonly stop: () => void;
};

/** A TLS server, which ends with the test. */
export async function tlsServer(
  t: Pick<TestContext, 'after'>,
  options: TlsOptions,
  prepare?: (server: ReturnType<typeof createTlsServer>) => void,
): Promise<RunningTls> {
  let connections = 0;
  const server = createTlsServer(options, (socket) => socket.on('error', () => undefined));
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections += 1;
    open.add(socket);
    socket.on('error', () => undefined).once('close', () => open.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  prepare?.(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = () => {
    if (server.listening) server.close();
    for (const socket of open) socket.destroy();
  };
  t.after(stop);
  return {
    port,
    connections: () => connections,
    present: (changed) => server.setSecureContext(changed),
    stop,
  };
}

/** Resolves when the connection is closed, also by a reset. */
export function closed(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (socket.closed) resolve();
  else socket.on('error', () => undefined).once('close', () => resolve());
  return promise;
}

/** The server's side of a connection in plain text. */
export class PlainSide {
  readonly socket: Socket;
  #received = Buffer.alloc(0);
  #changed = Promise.withResolvers<void>();
  /** Sends byte by byte, each in a segment of its own. */
  isSlow = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    socket.on('error', () => undefined).once('close', () => this.#wake());
  }

  async send(data: string | Buffer): Promise<void> {
    const bytes = typeof data === 'string' ? Buffer.from(data, 'latin1') : data;
    if (!this.isSlow) {
      this.socket.write(bytes);
      return;
    }
    this.socket.setNoDelay();
    for (const byte of bytes) {
      this.socket.write(Buffer.from([byte]));
      await nextTurn();
    }
  }

  /** What the client sent, as soon as it ends with this mark. Throws if the connection closes before. */
  async until(mark: string): Promise<string> {
    return this.#take(() => this.#received.toString('latin1').endsWith(mark));
  }

  /** What the client sent, as soon as it has this many bytes. */
  async bytes(count: number): Promise<Buffer> {
    return Buffer.from(await this.#take(() => this.#received.length >= count, count), 'latin1');
  }

  /** Stops reading. What the client sent meanwhile stays with the socket. */
  release(): void {
    this.socket.removeAllListeners('data').pause();
    if (this.#received.length > 0) this.socket.unshift(this.#received);
  }

  async #take(isComplete: () => boolean, count?: number): Promise<string> {
    while (!isComplete()) {
      if (this.socket.destroyed) throw new Error('the client closed the connection');
      await this.#changed.promise;
    }
    const text = this.#received.toString('latin1', 0, count ?? this.#received.length);
    this.#received = this.#received.subarray(text.length);
    return text;
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** What a server does before TLS. It continues with TLS unless the script returns `stay`. */
export type Script = (client: PlainSide) => Promise<'stay' | undefined>;

/** A server that follows a script with each client, and then presents its certificate. It ends with the test. */
export async function scriptedServer(
  t: Pick<TestContext, 'after'>,
  identity: Identity,
  script: Script,
): Promise<{ readonly port: number; readonly sockets: readonly Socket[] }> {
  const secureContext = createSecureContext(identity);
  const sockets: Socket[] = [];
  const serve = async (socket: Socket) => {
    const client = new PlainSide(socket);
    try {
      if ((await script(client)) === 'stay') return;
      client.release();
      const secure = new TLSSocket(socket, { isServer: true, secureContext });
      secure.on('error', () => undefined).resume();
    } catch {
      // The client has closed the connection, as it does when it learned what it needs.
      socket.destroy();
    }
  };
  const server = createServer((socket) => {
    sockets.push(socket);
    void serve(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}
