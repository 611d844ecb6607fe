/**
 * OpenSSH's server on loopback, as the current user, with its own host keys, configuration and authorized keys in a
 * temporary folder. Tests need `needsSshd()`.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { findProgram, needs, type Skip } from '../processes/missing-program.ts';
import { type StartedServer, startOnFreePorts } from '../processes/port.ts';
import { tempDir } from '../temp-dir.ts';

export type KeyType = 'ed25519' | 'ecdsa' | 'rsa';

export type KeyPair = {
  /** In the format of OpenSSH. */
  readonly privateKey: string;
  /** A line, as in authorized_keys. */
  readonly publicKey: string;
};

export type SshdOptions = {
  /** By default ed25519. */
  readonly hostKeys?: readonly KeyType[];
  /** The public keys that may sign in. */
  readonly authorized: readonly string[];
  /** The command behind SFTP, or null for a server without it; by default the one inside sshd. */
  readonly sftp?: string | null;
};

export type Sshd = Omit<StartedServer, 'ports'> & {
  readonly host: string;
  readonly port: number;
  /** The only user that can sign in. */
  readonly user: string;
  /** A line of its public key per type. */
  readonly hostKeys: Readonly<Partial<Record<KeyType, string>>>;
};

/** Debian's PATH for ordinary users does not include sbin. */
const folders = ['/usr/sbin', '/usr/local/sbin'];

/** Options for a test that needs `sshd()`: see `needs()`. */
export function needsSshd(): Skip {
  return needs('sshd', folders);
}

/** Generates a key pair; `passphrase` encrypts it, by default with a single round, which is fast. */
export async function sshKey(
  t: Pick<TestContext, 'after'>,
  type: KeyType,
  { passphrase = '', rounds = 1 }: { readonly passphrase?: string; readonly rounds?: number } = {},
): Promise<KeyPair> {
  const path = join(tempDir(t), 'key');
  const args = ['-q', '-t', type, '-N', passphrase, '-a', String(rounds), '-C', 'test', '-f', path];
  await promisify(execFile)('ssh-keygen', args);
  return {
    privateKey: readFileSync(path, 'utf8'),
    publicKey: readFileSync(`${path}.pub`, 'utf8').trim(),
  };
}

/** Starts sshd on a free loopback port. It stops when the test ends, with its sessions. */
export async function sshd(t: Pick<TestContext, 'after'>, options: SshdOptions): Promise<Sshd> {
  const { hostKeys = ['ed25519'], authorized, sftp = 'internal-sftp' } = options;
  const program = findProgram('sshd', folders);
  assert(program, 'sshd is not installed: the test lacks needsSshd()');
  // The service of the system would create it.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const host = '127.0.0.1';
  const pairs = await Promise.all(hostKeys.map((type) => sshKey(t, type)));
  const { ports, pid, log } = await startOnFreePorts(t, 1, ([port = 0], dir) => {
    for (const [index, { privateKey }] of pairs.entries())
      writeFileSync(join(dir, `host-key-${index}`), privateKey, { mode: 0o600 });
    writeFileSync(join(dir, 'authorized_keys'), `${authorized.join('\n')}\n`);
    const settings = [
      `ListenAddress ${host}:${port}`,
      ...pairs.map((_, index) => `HostKey ${join(dir, `host-key-${index}`)}`),
      `AuthorizedKeysFile ${join(dir, 'authorized_keys')}`,
      // The temporary folder is in one that all users may write to.
      'StrictModes no',
      'PidFile none',
      'UsePAM no',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'PermitRootLogin prohibit-password',
      'MaxStartups 100',
      ...(sftp === null ? [] : [`Subsystem sftp ${sftp}`]),
    ];
    const config = join(dir, 'sshd_config');
    writeFileSync(config, `${settings.join('\n')}\n`);
    return {
      program,
      args: ['-D', '-e', '-f', config],
      isReady: (text) => text.includes(`Server listening on ${host} port ${port}`),
    };
  });
  return {
    ...{ pid, log, host, port: ports[0] ?? 0, user: userInfo().username },
    hostKeys: Object.fromEntries(hostKeys.map((type, index) => [type, pairs[index]?.publicKey])),
  };
}
