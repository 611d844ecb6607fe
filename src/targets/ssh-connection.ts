/** A connection by SSH to a server whose public key is known. Its errors end no process, and its promises settle. */
import type { Socket } from 'node:net';
import type { AnyAuthMethod, Client, ClientChannel, SFTPWrapper } from 'ssh2';
import { shortened } from '../base/printable-text.ts';
import { describeSystemError } from '../base/system-error.ts';
import { type HostKey, hostKeyText, signatureAlgorithms } from './ssh-host-key.ts';
import { readUserKey } from './ssh-user-key.ts';

export type SshAccess = {
  readonly user: string;
  readonly privateKey: string | undefined;
  readonly passphrase: string | undefined;
  readonly password: string | undefined;
};

/** Why the server, or the settings, made it impossible. The message is for people and contains no secrets. */
export class SshFailure extends Error {
  constructor(message: string, cause?: unknown) {
    super(shortened(message, 1000), { cause });
    this.name = 'SshFailure';
  }
}

/** How a command ended: with an exit code, or by a signal such as SIGKILL. The output is the end of all of it. */
export type CommandResult = {
  readonly code: number | undefined;
  readonly signal: string | undefined;
  readonly output: string;
};

/** The end of the output of a command, in bytes. */
const keptOutput = 4096;
/** Of a server, in bytes: before the user is authenticated, and in all. The library keeps what it has to respond to. */
const mostBeforeReady = 256 * 1024;
const most = 64 * 1024 * 1024;

export class SshConnection {
  readonly #client: Client;
  readonly #socket: Socket;
  readonly #signal: AbortSignal;
  /** `Client.destroy()` does nothing after `end()` or an error: the server could keep the socket open. */
  readonly #abort = (): void => void this.#socket.destroy();
  #sftp: Promise<SFTPWrapper> | undefined;
  #isReady = false;
  #failed: Error | undefined;

  private constructor(client: Client, socket: Socket, signal: AbortSignal) {
    this.#client = client;
    this.#socket = socket;
    this.#signal = signal;
    signal.addEventListener('abort', this.#abort, { once: true });
    // Without a listener, an error between two operations would end the process.
    client.on('error', (error) => this.#fail(error));
    // The library writes a packet in parts; the second would wait 40 ms for the server to acknowledge the first.
    socket.setNoDelay();
  }

  /**
   * Connects and authenticates. Throws SshFailure if the private key is unreadable, if the server has another public
   * key or if it rejects the user, and the error of the connection.
   */
  static async open(
    connect: () => Promise<Socket>,
    access: SshAccess,
    hostKey: HostKey | undefined,
    signal: AbortSignal,
  ): Promise<SshConnection> {
    // Loaded with the first target: it would cost every start.
    const { default: ssh2 } = await import('ssh2');
    const key = readUserKey(ssh2.utils, access);
    if (typeof key === 'string') throw new SshFailure(key);
    const { user: username, password = '' } = access;
    // Nothing waits between these lines: an error of a socket without listeners would end the process.
    const connection = new SshConnection(new ssh2.Client(), await connect(), signal);
    try {
      const method: AnyAuthMethod =
        key === undefined ? { type: 'password', username, password } : { type: 'publickey', username, key };
      await connection.#authenticate(access, hostKey, method);
      return connection;
    } catch (error) {
      connection.end();
      throw error;
    }
  }

  async #authenticate(
    { user, password }: SshAccess,
    hostKey: HostKey | undefined,
    method: AnyAuthMethod,
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let other: Buffer | undefined;
    this.#client.once('ready', resolve);
    this.#client.once('close', () =>
      reject(this.#failed ?? new SshFailure('the server closed the connection')),
    );
    this.#client.once('error', (error: Error & { level?: string }) => {
      if (other !== undefined)
        reject(new SshFailure(`the server has another public key than host_key: ${hostKeyText(other)}`));
      else if (error.level === 'client-authentication') {
        const secret = password === undefined ? 'private key' : 'password';
        reject(new SshFailure(`the server rejected the user ${user} and its ${secret}`, error));
      } else if (/no matching host key/.test(error.message))
        reject(
          new SshFailure(`the server has no public key of the type of host_key, ${hostKey?.type}`, error),
        );
      else if (error.level === 'client-socket') reject(error);
      else reject(new SshFailure(`SSH: ${error.message}`, error));
    });
    this.#client.connect({
      sock: this.#socket,
      username: user,
      authHandler: [method],
      // The deadline of the caller ends it.
      readyTimeout: 0,
      // Without compression: a small packet could become a large one.
      algorithms: { serverHostKey: signatureAlgorithms(hostKey), compress: ['none'] },
      hostVerifier: (key: Buffer) => {
        const isPinned = hostKey?.blob.equals(key) === true;
        if (!isPinned) other = key;
        return isPinned;
      },
    });
    // After the listener of the client, which pauses the socket until then.
    this.#socket.on('data', () => this.#limit());
    if (this.#signal.aborted) this.#abort();
    await promise;
    this.#isReady = true;
  }

  /** Runs a command in the shell of the user. */
  async run(command: string): Promise<CommandResult> {
    const channel = await this.#opened<ClientChannel>('failed to run the command', (done) =>
      this.#client.exec(command, done),
    );
    let output: Buffer = Buffer.alloc(0);
    const take = (chunk: Buffer) => {
      output = Buffer.concat([output, chunk]).subarray(-keptOutput);
    };
    channel.on('data', take);
    channel.stderr.on('data', take);
    const ended = this.pending<Omit<CommandResult, 'output'>>();
    let exit: Omit<CommandResult, 'output'> | undefined;
    channel.once('exit', (code: number | null, signal?: string) => {
      exit = { code: code ?? undefined, signal };
    });
    channel.once('close', () => {
      if (exit === undefined)
        ended.reject(new SshFailure('the server closed the connection while the command ran'));
      else ended.resolve(exit);
    });
    channel.end();
    const result = await ended.promise;
    return { ...result, output: output.toString('utf8') };
  }

  /** The session for operations on files; opened again if the server closed it. Throws SshFailure without SFTP. */
  async sftp(): Promise<SFTPWrapper> {
    this.#sftp ??= this.#openSftp();
    return this.#sftp;
  }

  async #openSftp(): Promise<SFTPWrapper> {
    const sftp = await this.#opened<SFTPWrapper>('the server offers no SFTP', (done) =>
      this.#client.sftp(done),
    );
    sftp.on('error', (error: Error) => this.#fail(error));
    // Requests in a closed session get no response.
    sftp.once('end', () => {
      this.#sftp = undefined;
    });
    return sftp;
  }

  async #opened<T>(
    purpose: string,
    open: (done: (error: Error | undefined, channel: T) => void) => void,
  ): Promise<T> {
    const { promise, resolve, reject } = this.pending<T>();
    if (!this.#socket.destroyed) {
      try {
        open((error, channel) => {
          if (error === undefined) resolve(channel);
          else reject(new SshFailure(`${purpose}: ${error.message}`, error));
        });
      } catch (error) {
        // The library throws if the connection is closing.
        reject(this.#lost(error));
      }
    }
    return promise;
  }

  /** A promise that is rejected when the connection ends. */
  pending<T>(): PromiseWithResolvers<T> {
    const pending = Promise.withResolvers<T>();
    const lose = () => pending.reject(this.#lost());
    const remove = () => this.#client.off('close', lose);
    this.#client.once('close', lose);
    pending.promise.then(remove, remove);
    if (this.#socket.destroyed) lose();
    return pending;
  }

  /** Closes the connection. */
  end(): void {
    this.#signal.removeEventListener('abort', this.#abort);
    this.#client.end();
    this.#socket.destroy();
  }

  #lost(cause: unknown = this.#failed): SshFailure {
    if (cause === undefined) return new SshFailure('the server closed the connection');
    return new SshFailure(`lost the connection: ${reasonOf(cause as Error)}`, cause);
  }

  #fail(error: Error): void {
    this.#failed ??= error;
    this.#socket.destroy();
  }

  /** Ends the connection to a server that sends too much. */
  #limit(): void {
    if (this.#socket.bytesRead > (this.#isReady ? most : mostBeforeReady))
      this.#fail(new SshFailure('the server sends too much'));
  }
}

function reasonOf(error: Error & { readonly level?: string }): string {
  return error.level === 'client-socket' ? describeSystemError(error) : error.message;
}
