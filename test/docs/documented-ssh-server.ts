/** The SSH server of a page: OpenSSH on a loopback port, for the user of the test, with keys of its own. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { findProgram, needs, type Skip } from '../harness/processes/missing-program.ts';
import { freePort } from '../harness/processes/port.ts';
import { tempDir } from '../harness/temp-dir.ts';

/** Often not in PATH; it comes with ssh-keygen. */
const folders = ['/usr/sbin', '/usr/local/sbin'];

export const needsSshd: Skip = needs('sshd', folders);

export type SshServer = {
  readonly port: number;
  readonly user: string;
  /** The line of its public key, as ssh-keyscan prints it. */
  readonly hostKey: string;
  /** The key of the user, in the format of OpenSSH. */
  readonly privateKey: string;
};

/** Starts a server. It stops when the test ends. */
export async function sshServer(t: Pick<TestContext, 'after'>): Promise<SshServer> {
  const dir = tempDir(t);
  const [hostKey, userKey] = ['host', 'user'].map((name) => join(dir, name));
  for (const file of [hostKey, userKey])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', file ?? '']);
  const port = await freePort();
  const settings = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${hostKey}`,
    `AuthorizedKeysFile ${userKey}.pub`,
    'Subsystem sftp internal-sftp',
    'PidFile none',
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
  ];
  const file = join(dir, 'sshd_config');
  writeFileSync(file, settings.map((line) => `${line}\n`).join(''));
  // It starts itself again for each connection, and so demands an absolute path.
  const server = spawn(findProgram('sshd', folders) ?? 'sshd', ['-D', '-e', '-f', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(server, 'close');
  t.after(async () => {
    server.kill('SIGTERM');
    await ended;
  });
  let log = '';
  for await (const chunk of server.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    log += chunk;
    if (log.includes('Server listening on')) break;
  }
  if (!log.includes('Server listening on')) throw new Error(`sshd did not start: ${log}`);
  server.stderr.resume();
  const { username: user } = userInfo();
  const [publicKey = ''] = readFileSync(`${hostKey}.pub`, 'utf8').split(' test\n');
  return { port, user, hostKey: publicKey, privateKey: readFileSync(userKey ?? '', 'utf8') };
}
