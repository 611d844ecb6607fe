/** A connection by SSH to a server whose public key is known, with the operations on files that an installation needs. */
import type { Socket } from 'node:net';
import type { Client, ClientChannel, SFTPWrapper, Stats } from 'ssh2';
import { type HostKey, hostKeyText, signatureAlgorithms } from './ssh-host-key.ts';

export type SshAccess = {
  readonly user: string;
  readonly privateKey: string | undefined;
  readonly passphrase: string | undefined;
  readonly password: string | undefined;
};

/** What the server, or the settings, made impossible. The message is for people and contains no secrets. */
export class SshFailure extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'SshFailure';
  }
}

/** SFTP (draft-ietf-secsh-filexfer-02 §7). */
const noSuchFile = 2;
/** The end of the output of a command. */
const keptOutput = 4096;

export class SshConnection {
  readonly #client: Client;
  readonly #signal: AbortSignal;
  readonly #abort: () => void;
  #sftp: Promise<SFTPWrapper> | undefined;
  #failed: Error | undefined;

  private constructor(client: Client, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
    this.#abort = () => client.destroy();
    signal.addEventListener('abort', this.#abort, { once: true });
    // Without a listener, an error between two operations would end the process.
    client.on('error', (error) => {
      this.#failed ??= error;
    });
  }

  /**
   * Authenticates over a connected socket. Throws SshFailure if the server has another public key or rejects the user,
   * and the error of the connection.
   */
  static async open(
    socket: Socket,
    { user, privateKey, passphrase, password }: SshAccess,
    hostKey: HostKey | undefined,
    signal: AbortSignal,
  ): Promise<SshConnection> {
    // Loaded with the first target: it would cost every start.
    const { default: ssh2 } = await import('ssh2');
    if (privateKey !== undefined) {
      const parsed = ssh2.utils.parseKey(privateKey, passphrase);
      if (parsed instanceof Error) {
        socket.destroy();
        throw new SshFailure(`cannot read private_key: ${parsed.message}`);
      }
    }
    const client = new ssh2.Client();
    const connection = new SshConnection(client, signal);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let other: Buffer | undefined;
    client.once('ready', resolve);
    client.once('close', () => reject(new SshFailure('the server closed the connection')));
    client.once('error', (error: Error & { level?: string }) => {
      if (other !== undefined)
        reject(new SshFailure(`the server has another public key than host_key: ${hostKeyText(other)}`));
      else if (error.level === 'client-authentication') {
        reject(
          new SshFailure(
            `the server rejected the user ${user} and its ${password === undefined ? 'private key' : 'password'}`,
            error,
          ),
        );
      } else if (error.level === undefined || error.level === 'client-socket') reject(error);
      else reject(new SshFailure(`SSH: ${error.message}`, error));
    });
    client.connect({
      sock: socket,
      username: user,
      ...(privateKey !== undefined && { privateKey }),
      ...(passphrase !== undefined && { passphrase }),
      ...(password !== undefined && { password }),
      // The deadline of the caller ends it.
      readyTimeout: 0,
      algorithms: { serverHostKey: signatureAlgorithms(hostKey) },
      hostVerifier: (key: Buffer) => {
        // biome-ignore lint/plugin/compared-secrets: public keys.
        const isPinned = hostKey?.blob.equals(key) === true;
        if (!isPinned) other = key;
        return isPinned;
      },
    });
    try {
      await promise;
      return connection;
    } catch (error) {
      connection.end();
      throw error;
    }
  }

  /** Writes a new file with the permissions and, where the server allows it, the owner of the file `like`, or `mode`. */
  async upload(
    path: string,
    content: string,
    { like, mode }: { readonly like: string; readonly mode: number },
  ): Promise<void> {
    const old = await this.#stat(like);
    // What an upload before this one left may belong to somebody else, and have other permissions.
    await this.#remove(path);
    const permissions = old === undefined ? mode : old.mode & 0o777;
    await this.#call<void>(`write ${path}`, (sftp, done) =>
      sftp.writeFile(path, content, { mode: permissions, flag: 'wx' }, done),
    );
    // The umask of the server may have taken some away.
    await this.#call<void>(`set the permissions of ${path}`, (sftp, done) =>
      sftp.chmod(path, permissions, done),
    );
    if (old === undefined) return;
    // Only root may give files away; for others the owner stays the user.
    await this.#call<void>(`set the owner of ${path}`, (sftp, done) =>
      sftp.chown(path, old.uid, old.gid, done),
    ).catch((error: unknown) => this.#unlessLost(error));
  }

  /** Renames a file over another one. */
  async rename(from: string, to: string): Promise<void> {
    const purpose = `rename ${from} to ${to}`;
    try {
      await this.#call<void>(purpose, (sftp, done) => sftp.ext_openssh_rename(from, to, done));
    } catch (error) {
      if (
        !(error instanceof SshFailure) ||
        !(error.cause instanceof Error) ||
        !/extended|unsupported/i.test(error.cause.message)
      )
        throw error;
      // Not OpenSSH: its rename does not replace a file.
      await this.#remove(to);
      await this.#call<void>(purpose, (sftp, done) => sftp.rename(from, to, done));
    }
  }

  /** Removes files that may not exist; a failure does not matter. */
  async removeAll(paths: readonly string[]): Promise<void> {
    for (const path of paths) await this.#remove(path).catch(() => undefined);
  }

  /** The content of a file; undefined without one, or if it is larger than `most` bytes. */
  async read(path: string, most: number): Promise<string | undefined> {
    const stats = await this.#stat(path);
    if (stats === undefined || stats.size > most) return undefined;
    const content = await this.#call<Buffer>(`read ${path}`, (sftp, done) => sftp.readFile(path, done));
    return content.toString('utf8');
  }

  /** Runs a command in the shell of the user. Returns its exit code, undefined if a signal ended it, and its output. */
  async run(command: string): Promise<{ readonly code: number | undefined; readonly output: string }> {
    const { promise, resolve, reject } = this.#pending<ClientChannel>();
    this.#client.exec(command, (error, channel) => {
      if (error === undefined) resolve(channel);
      else reject(new SshFailure(`failed to run the command: ${error.message}`, error));
    });
    const channel = await promise;
    let output = '';
    const take = (chunk: Buffer) => {
      output = (output + chunk.toString('utf8')).slice(-keptOutput);
    };
    channel.on('data', take);
    channel.stderr.on('data', take);
    const ended = this.#pending<number | undefined>();
    let exit: { readonly code: number | null } | undefined;
    channel.once('exit', (code: number | null) => {
      exit = { code };
    });
    channel.once('close', () => {
      if (exit === undefined) {
        ended.reject(new SshFailure('the server closed the connection while the command ran'));
      } else ended.resolve(exit.code ?? undefined);
    });
    channel.end();
    return { code: await ended.promise, output };
  }

  /** Closes the connection. */
  end(): void {
    this.#signal.removeEventListener('abort', this.#abort);
    this.#client.end();
    this.#client.destroy();
  }

  async #stat(path: string): Promise<Stats | undefined> {
    try {
      return await this.#call<Stats>(`read the attributes of ${path}`, (sftp, done) => sftp.stat(path, done));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async #remove(path: string): Promise<void> {
    try {
      await this.#call<void>(`remove ${path}`, (sftp, done) => sftp.unlink(path, done));
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  /** Runs an operation on files. Throws SshFailure with its purpose. */
  async #call<T>(
    purpose: string,
    operation: (sftp: SFTPWrapper, done: (error?: Error | null, result?: T) => void) => void,
  ): Promise<T> {
    this.#sftp ??= this.#openFiles();
    const sftp = await this.#sftp;
    const { promise, resolve, reject } = this.#pending<T>();
    const fail = (error: Error) => reject(new SshFailure(`failed to ${purpose}: ${error.message}`, error));
    try {
      operation(sftp, (error, result) => {
        if (error === undefined || error === null) resolve(result as T);
        else fail(error);
      });
    } catch (error) {
      // What the server does not support is thrown.
      fail(error as Error);
    }
    return promise;
  }

  async #openFiles(): Promise<SFTPWrapper> {
    const { promise, resolve, reject } = this.#pending<SFTPWrapper>();
    this.#client.sftp((error, sftp) => {
      if (error === undefined) resolve(sftp);
      else reject(new SshFailure(`the server offers no SFTP: ${error.message}`, error));
    });
    return promise;
  }

  /** A promise that is rejected when the connection ends. */
  #pending<T>(): PromiseWithResolvers<T> {
    const pending = Promise.withResolvers<T>();
    const lost = () => pending.reject(this.#failed ?? new SshFailure('the server closed the connection'));
    this.#client.once('close', lost);
    if (this.#signal.aborted) lost();
    const remove = () => this.#client.off('close', lost);
    pending.promise.then(remove, remove);
    return pending;
  }

  /** Ignores a failed operation, but not a lost connection. */
  #unlessLost(error: unknown): void {
    if (!(error instanceof SshFailure) || error.cause === undefined) throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof SshFailure && (error.cause as { code?: unknown } | undefined)?.code === noSuchFile;
}
