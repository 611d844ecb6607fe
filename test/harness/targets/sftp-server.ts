/**
 * An SSH server in the process of the test, for what OpenSSH's does not do: passwords without users of the system, SFTP
 * without the extension for renaming over a file, and hostile responses. Its files are in memory.
 */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { TestContext } from 'node:test';
import ssh2, { type AuthContext, type Connection, type ServerChannel, type SFTPWrapper } from 'ssh2';

const { OPEN_MODE, STATUS_CODE } = ssh2.utils.sftp;

export type SftpServerOptions = {
  /** The host key, in the format of OpenSSH. */
  readonly hostKey: string;
  readonly password?: string;
  /** By default the password is checked. */
  readonly authenticate?: (context: AuthContext, client: Connection) => void;
  /** By default each command ends with exit code 0. */
  readonly run?: (command: string, channel: ServerChannel, client: Connection) => void;
  /** Changes how the server responds to operations on files. */
  readonly prepare?: (sftp: SFTPWrapper, client: Connection) => void;
  /** The attributes of a file; by default its permissions, owner 0 and real size. */
  readonly attributes?: (content: Buffer) => object;
};

export type SftpServer = {
  readonly port: number;
  readonly files: Map<string, Buffer>;
  /** The operations that changed files, in their order: `rename /a /b`. */
  readonly changes: string[];
  /** The bytes of files that were read. */
  readonly reads: { readonly path: string; readonly from: number; readonly to: number }[];
  /** The connections that are open. */
  readonly sockets: ReadonlySet<Socket>;
};

/** Starts a server on a free loopback port. It stops when the test ends. */
export async function sftpServer(t: TestContext, options: SftpServerOptions): Promise<SftpServer> {
  const files = new Map<string, Buffer>();
  const changes: string[] = [];
  const reads: SftpServer['reads'] = [];
  const server = new ssh2.Server({ hostKeys: [options.hostKey] }, (client) => {
    client.on('error', () => undefined);
    client.on('authentication', (context) => {
      if (options.authenticate !== undefined) return options.authenticate(context, client);
      if (context.method === 'password' && context.password === options.password) context.accept();
      else context.reject(['password']);
    });
    client.on('session', (accept) => {
      const session = accept();
      session.on('sftp', (acceptSftp) => {
        const sftp = acceptSftp();
        serveFiles(sftp, { files, changes, reads, attributes: options.attributes });
        options.prepare?.(sftp, client);
      });
      session.on('exec', (acceptExec, _reject, { command }) => {
        const channel = acceptExec();
        if (options.run !== undefined) return options.run(command, channel, client);
        channel.exit(0);
        channel.end();
      });
    });
  });
  const { port, sockets } = await listening(t, (socket) => server.injectSocket(socket));
  return { port, files, changes, reads, sockets };
}

/** A TCP server on a free loopback port that gives its connections away. It closes them when the test ends. */
export async function listening(
  t: TestContext,
  serve: (socket: Socket) => void,
): Promise<{ readonly port: number; readonly sockets: ReadonlySet<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.setNoDelay();
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, 'close');
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

type Served = Pick<SftpServer, 'files' | 'changes' | 'reads'> & {
  readonly attributes: SftpServerOptions['attributes'];
};

function serveFiles(sftp: SFTPWrapper, { files, changes, reads, attributes }: Served): void {
  const opened: string[] = [];
  const pathOf = (handle: Buffer) => opened[handle.readUInt32BE(0)] ?? '';
  const status = (id: number, isDone: boolean, otherwise = STATUS_CODE.NO_SUCH_FILE) =>
    sftp.status(id, isDone ? STATUS_CODE.OK : otherwise);
  const stat = (id: number, path: string) => {
    const content = files.get(path);
    if (content === undefined) return status(id, false);
    const given = attributes?.(content) ?? { mode: 0o100_640, uid: 0, gid: 0, size: content.length };
    return sftp.attrs(id, { atime: 0, mtime: 0, ...given } as never);
  };
  sftp.on('STAT', stat);
  sftp.on('LSTAT', stat);
  sftp.on('FSTAT', (id, handle) => stat(id, pathOf(handle)));
  sftp.on('OPEN', (id, path, flags) => {
    const isNew = (flags & OPEN_MODE.CREAT) !== 0;
    if (!isNew && !files.has(path)) return status(id, false);
    if (isNew) {
      files.set(path, Buffer.alloc(0));
      changes.push(`create ${path}`);
    }
    const handle = Buffer.alloc(4);
    handle.writeUInt32BE(opened.push(path) - 1);
    return sftp.handle(id, handle);
  });
  sftp.on('READ', (id, handle, offset, length) => {
    const path = pathOf(handle);
    const part = files.get(path)?.subarray(offset, offset + length) ?? Buffer.alloc(0);
    reads.push({ path, from: offset, to: offset + part.length });
    return part.length === 0 ? sftp.status(id, STATUS_CODE.EOF) : sftp.data(id, part);
  });
  sftp.on('WRITE', (id, handle, offset, data) => {
    const path = pathOf(handle);
    files.set(path, Buffer.concat([(files.get(path) ?? Buffer.alloc(0)).subarray(0, offset), data]));
    status(id, true);
  });
  sftp.on('CLOSE', (id) => status(id, true));
  sftp.on('SETSTAT', (id) => status(id, true));
  sftp.on('FSETSTAT', (id) => status(id, true));
  sftp.on('REMOVE', (id, path) => {
    const isThere = files.delete(path);
    if (isThere) changes.push(`remove ${path}`);
    status(id, isThere);
  });
  sftp.on('RENAME', (id, from, to) => {
    const content = files.get(from);
    if (content === undefined || files.has(to)) return status(id, false, STATUS_CODE.FAILURE);
    files.delete(from);
    files.set(to, content);
    changes.push(`rename ${from} ${to}`);
    return status(id, true);
  });
}
