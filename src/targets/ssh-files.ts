/** Operations on the files of a server, by SFTP, that an installation needs. */
import type { SFTPWrapper, Stats } from 'ssh2';
import { type SshConnection, SshFailure } from './ssh-connection.ts';

/** Status codes of SFTP (draft-ietf-secsh-filexfer-02 §7). */
const noSuchFile = 2;
const failure = 4;
const unsupported = 8;

/** A server may leave out attributes. */
type Attributes = Pick<Stats, 'isDirectory'> & Partial<Pick<Stats, 'mode' | 'uid' | 'gid' | 'size'>>;

type Done<T> = (error?: Error | null, result?: T) => void;

export class SshFiles {
  readonly #connection: SshConnection;

  constructor(connection: SshConnection) {
    this.#connection = connection;
  }

  /** Writes a new file with `mode`, or with the permissions and, where possible, the owner of the file `like`. */
  async upload(
    path: string,
    content: string,
    { like, mode }: { readonly like: string; readonly mode: number },
  ): Promise<void> {
    const old = await this.#stat(like);
    if (old?.isDirectory() === true) throw new SshFailure(`${like} is a directory`);
    // A file that an interrupted upload left may have another owner and other permissions.
    await this.#remove(path);
    const permissions = old?.mode === undefined ? mode : old.mode & 0o777;
    await this.#call<void>(`write ${path}`, (sftp, done) =>
      sftp.writeFile(path, content, { mode: permissions, flag: 'wx' }, done),
    );
    // The umask of the server may have taken some away.
    await this.#call<void>(`set the permissions of ${path}`, (sftp, done) =>
      sftp.chmod(path, permissions, done),
    );
    const { uid, gid } = old ?? {};
    if (uid === undefined || gid === undefined) return;
    try {
      await this.#call<void>(`set the owner of ${path}`, (sftp, done) => sftp.chown(path, uid, gid, done));
    } catch (error) {
      // Only root may give files away; for others the owner stays the user.
      if (statusOf(error) === undefined) throw error;
    }
  }

  /** Renames a file over another one. */
  async rename(from: string, to: string): Promise<void> {
    try {
      await this.#call<void>(`rename ${from} to ${to}`, (sftp, done) =>
        sftp.ext_openssh_rename(from, to, done),
      );
    } catch (error) {
      if (!isUnsupported(error)) throw error;
      await this.#renameTwice(from, to);
    }
  }

  /** Without the extension of OpenSSH: a rename does not replace a file. If it fails, the old file is there again. */
  async #renameTwice(from: string, to: string): Promise<void> {
    const aside = `${to}.vault-old`;
    await this.#remove(aside);
    const wasThere = (await this.#stat(to)) !== undefined;
    if (wasThere) await this.#rename(to, aside);
    try {
      await this.#rename(from, to);
    } catch (error) {
      if (wasThere) await this.#rename(aside, to).catch(() => undefined);
      throw error;
    }
    await this.#remove(aside);
  }

  async #rename(from: string, to: string): Promise<void> {
    await this.#call<void>(`rename ${from} to ${to}`, (sftp, done) => sftp.rename(from, to, done));
  }

  /** Removes files that may not exist; a failure does not matter. */
  async removeAll(paths: readonly string[]): Promise<void> {
    for (const path of paths) await this.#remove(path).catch(() => undefined);
  }

  /** The size of a file in bytes, as the server reports it; undefined without one. */
  async size(path: string): Promise<number | undefined> {
    const stats = await this.#stat(path);
    return stats?.isDirectory() === false ? stats.size : undefined;
  }

  /** Up to `length` bytes of a file from `position` on. Never reads more, however large the file is. */
  async read(path: string, position: number, length: number): Promise<Buffer> {
    const handle = await this.#call<Buffer>(`read ${path}`, (sftp, done) => sftp.open(path, 'r', done));
    const content = Buffer.alloc(length);
    let filled = 0;
    while (filled < length) {
      const count = await this.#call<number>(`read ${path}`, (sftp, done) =>
        sftp.read(handle, content, filled, length - filled, position + filled, (error, bytes) =>
          done(error, bytes),
        ),
      );
      if (count === 0) break;
      filled += count;
    }
    await this.#call<void>(`close ${path}`, (sftp, done) => sftp.close(handle, done));
    return content.subarray(0, filled);
  }

  async #stat(path: string): Promise<Attributes | undefined> {
    try {
      return await this.#call<Stats>(`read the attributes of ${path}`, (sftp, done) => sftp.stat(path, done));
    } catch (error) {
      if (statusOf(error) === noSuchFile) return undefined;
      throw error;
    }
  }

  async #remove(path: string): Promise<void> {
    try {
      await this.#call<void>(`remove ${path}`, (sftp, done) => sftp.unlink(path, done));
    } catch (error) {
      if (statusOf(error) !== noSuchFile) throw error;
    }
  }

  /** Runs an operation on files. Throws SshFailure with its purpose. */
  async #call<T>(purpose: string, operation: (sftp: SFTPWrapper, done: Done<T>) => void): Promise<T> {
    const sftp = await this.#connection.sftp();
    const { promise, resolve, reject } = this.#connection.pending<T>();
    const fail = (error: Error) => reject(new SshFailure(`failed to ${purpose}: ${reasonOf(error)}`, error));
    // The library may wait for a response to a request that it sends in a closed session.
    const lose = () => fail(new Error('the server closed the session'));
    const remove = () => sftp.off('end', lose);
    sftp.once('end', lose);
    promise.then(remove, remove);
    try {
      operation(sftp, (error, result) => {
        if (error === undefined || error === null) resolve(result as T);
        else fail(error);
      });
    } catch (error) {
      // The library throws if the server does not support an operation.
      fail(error as Error);
    }
    return promise;
  }
}

/** The status code of the server; undefined if there was no response. */
function statusOf(error: unknown): number | undefined {
  const { code } = ((error as Error).cause ?? {}) as { readonly code?: unknown };
  return error instanceof SshFailure && typeof code === 'number' ? code : undefined;
}

function isUnsupported(error: unknown): boolean {
  const { message = '' } = ((error as Error).cause ?? {}) as { readonly message?: string };
  return statusOf(error) === unsupported || /does not support this extended request/.test(message);
}

/** SFTP has no status for a full disk and others. */
function reasonOf(error: Error & { readonly code?: unknown }): string {
  return error.code === failure
    ? `${error.message}, which the server does not explain; its disk may be full`
    : error.message;
}
