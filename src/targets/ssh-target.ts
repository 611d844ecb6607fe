/**
 * Target `ssh`: files on a server, by SFTP. Each is uploaded beside its destination and renamed, so that no program
 * reads half a file; then a command runs, such as a reload.
 */
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { shortened } from '../base/printable-text.ts';
import { describeSystemError } from '../base/system-error.ts';
import { OutboundRefusal } from '../net/outbound-guard.ts';
import { outboundSocket } from '../net/outbound-socket.ts';
import { type SshAccess, SshConnection, SshFailure } from './ssh-connection.ts';
import { SshFiles } from './ssh-files.ts';
import { hostKeyOf } from './ssh-host-key.ts';
import {
  type Installed,
  type Material,
  named,
  type TargetContext,
  TargetError,
  type TargetType,
} from './target.ts';

/** In the order in which they are put into place: a server that reads them has the key of each certificate. */
const fileKinds = ['private_key', 'combined', 'chain', 'certificate', 'fullchain'] as const;

type FileKind = (typeof fileKinds)[number];

const path = z
  .string()
  .max(1000)
  .regex(/^\/(?:[^\p{C}])*[^/\p{C}]$/u, {
    error: 'must be an absolute path of a file; it may contain {certificate}',
  })
  .optional();

const mode = z.string().regex(/^0[0-7]{3}$/, { error: 'must be file permissions, such as "0640"' });

const config = z
  .strictObject({
    host: z
      .string({ error: 'is missing; it must be the name or address of the server' })
      .max(253)
      .regex(/^[A-Za-z0-9._:-]+$/, {
        error: 'must be the name or address of a server; the port is a setting of its own',
      }),
    port: z.int().min(1).max(65_535).default(22),
    user: z
      .string({ error: 'is missing; it must be the user on the server' })
      .max(100)
      .regex(/^[^\p{C}\s]+$/u, { error: 'must be a user name' }),
    host_key: z
      .string({ error: 'is missing; it must be the public key of the server, as ssh-keyscan prints it' })
      .max(4000)
      .refine((text) => hostKeyOf(text) !== undefined, {
        error: 'must be the public key of the server, such as "ssh-ed25519 AAAA…"; ssh-keyscan prints it',
      })
      .describe('the public key of the server, as ssh-keyscan prints it'),
    private_key: z.string().max(20_000).describe('of the user, instead of a password').optional(),
    passphrase: z.string().max(1000).describe('of the private key').optional(),
    password: z.string().max(1000).optional(),
    files: z
      .strictObject(
        { fullchain: path, private_key: path, certificate: path, chain: path, combined: path },
        {
          error: ({ code }) =>
            code === 'invalid_type'
              ? 'is missing; it must be a mapping of fullchain, private_key and others to paths'
              : undefined,
        },
      )
      .refine((files) => Object.keys(files).length > 0, { error: 'must name at least one file' })
      .refine((files) => new Set(Object.values(files)).size === Object.keys(files).length, {
        error: 'must not contain the same path twice',
      })
      .describe('absolute paths; {certificate} stands for the name of the certificate'),
    private_key_mode: mode.default('0600'),
    command: z
      .string()
      .min(1)
      .max(4000)
      .regex(/^[^\0]*$/, { error: 'must not contain a NUL character' })
      .describe('run after each upload, such as sudo systemctl reload nginx')
      .optional(),
    timeout: z.int().min(1).max(600).describe('in seconds').default(60),
  })
  .refine(({ private_key, password }) => (private_key === undefined) !== (password === undefined), {
    path: ['private_key'],
    message: 'or password is needed, not both',
  });

/**
 * `private_key` in the format of OpenSSH or PEM; `combined`: the private key and the chain in one file;
 * `private_key_mode` is for new files, as existing ones keep their owner and permissions; `command` is run by the shell
 * of the user; `timeout` in seconds, for all of it.
 */
export type SshTargetConfig = z.output<typeof config>;

type RemoteFile = { readonly path: string; readonly content: string; readonly isSecret: boolean };

export const sshTarget: TargetType<SshTargetConfig> = {
  type: 'ssh',
  title: 'files on a server, by SFTP, and a command',
  config,
  host: ({ host }) => host,
  destination: ({ files }, certificate) =>
    named(
      files.fullchain ?? files.combined ?? files.certificate ?? files.private_key ?? files.chain ?? '',
      certificate,
    ),
  patience: ({ timeout }) => timeout * second,
  create: (settings, context) => ({
    install: (material, _remoteId, signal) =>
      connected(settings, context, signal, (connection) => install(settings, connection, material)),
    isInstalled: (material, _remoteId, signal) =>
      connected(settings, context, signal, (connection) => isInPlace(settings, connection, material)),
  }),
};

async function install(
  { files: places, private_key_mode, command }: SshTargetConfig,
  connection: SshConnection,
  material: Material,
): Promise<Installed> {
  const files = new SshFiles(connection);
  const staged: { readonly from: string; readonly to: string }[] = [];
  try {
    for (const { path: to, content, isSecret } of filesOf(places, material, material.privateKey.expose())) {
      const from = `${to}.vault-new`;
      staged.push({ from, to });
      const mode = isSecret ? Number.parseInt(private_key_mode, 8) : 0o644;
      await files.upload(from, content, { like: to, mode });
    }
    for (const { from, to } of staged) await files.rename(from, to);
  } catch (error) {
    await files.removeAll(staged.map(({ from }) => from));
    throw error;
  }
  if (command === undefined) return {};
  const { code, signal, output } = await connection.run(command);
  const isDone = code === 0;
  const end = code === undefined ? `ended by ${signal ?? 'a signal'}` : `exit code ${code}`;
  return {
    reload: { result: isDone ? 'ok' : 'failed', output: lastLine(output) ?? (isDone ? null : end) },
  };
}

/** Compares what is public, at the end of a combined file; the private key stays on the server. */
async function isInPlace(
  { files: places }: SshTargetConfig,
  connection: SshConnection,
  material: Omit<Material, 'privateKey'>,
): Promise<boolean> {
  const files = new SshFiles(connection);
  for (const { path: place, content, isSecret } of filesOf(places, material, '')) {
    const wanted = Buffer.from(content);
    const size = await files.size(place);
    if (size === undefined || (isSecret ? size <= wanted.length : size !== wanted.length)) return false;
    const found = await files.read(place, size - wanted.length, wanted.length);
    if (!found.equals(wanted)) return false;
  }
  return true;
}

function filesOf(
  files: SshTargetConfig['files'],
  { name, certificate, chain, fullchain }: Omit<Material, 'privateKey'>,
  privateKey: string,
): RemoteFile[] {
  const contents: Record<FileKind, string> = {
    ...{ private_key: privateKey, combined: privateKey + fullchain, chain, certificate, fullchain },
  };
  return fileKinds.flatMap((kind) => {
    const pattern = files[kind];
    const isSecret = kind === 'private_key' || kind === 'combined';
    return pattern === undefined ? [] : [{ path: named(pattern, name), content: contents[kind], isSecret }];
  });
}

async function connected<T>(
  settings: SshTargetConfig,
  { guard }: TargetContext,
  signal: AbortSignal,
  work: (connection: SshConnection) => Promise<T>,
): Promise<T> {
  const { host, port, user, private_key, passphrase, password } = settings;
  try {
    const connect = () => outboundSocket(guard, { host, port }, signal);
    const access: SshAccess = { user, privateKey: private_key, passphrase, password };
    const connection = await SshConnection.open(connect, access, hostKeyOf(settings.host_key), signal);
    try {
      return await work(connection);
    } finally {
      connection.end();
    }
  } catch (error) {
    // The end of the connection that an abort caused has other reasons.
    if (signal.aborted) throw new TargetError(`${host} did not answer in time`, { cause: error });
    if (error instanceof SshFailure || error instanceof OutboundRefusal) {
      throw new TargetError(error.message, { cause: error });
    }
    const reason = describeSystemError(error as NodeJS.ErrnoException);
    throw new TargetError(`failed to connect to ${host}:${port}: ${reason}`, { cause: error });
  }
}

function lastLine(output: string): string | null {
  const line = output.trimEnd().split('\n').at(-1) ?? '';
  return shortened(line, 300) || null;
}
