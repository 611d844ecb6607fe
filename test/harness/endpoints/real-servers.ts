/** Servers of Debian that present a certificate on a port of loopback, and the signal that makes each load it again. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { eventually } from '../eventually.ts';
import { findProgram, needs, type Skip } from '../processes/missing-program.ts';
import { type StartedServer, startOnFreePorts } from '../processes/port.ts';

/** What a server presents. */
export type ServedFiles = { readonly fullchain: string; readonly key: string; readonly combined: string };

/** Skips a test without the program, or without root for those that start processes of users of their own. */
export function asRoot(program: string): Skip {
  if (process.getuid?.() === 0) return needs(program, ['/usr/sbin']);
  return { skip: `only root can start ${program}` };
}

/** Starts a server that listens on its ports when it is ready. */
export function startServer(
  t: TestContext,
  program: string,
  count: number,
  args: (ports: readonly number[], dir: string) => readonly string[],
): Promise<StartedServer> {
  return startOnFreePorts(t, count, (ports, dir) => ({
    program: findProgram(program, ['/usr/sbin', '/usr/lib/postfix/sbin']) ?? program,
    args: args(ports, dir),
    isReady: async () => (await Promise.all(ports.map(listens))).every(Boolean),
  }));
}

/** The same for one that would leave workers behind if it was killed: it ends by a signal that it handles. */
async function startMaster(
  t: TestContext,
  program: string,
  count: number,
  args: (ports: readonly number[], dir: string) => readonly string[],
): Promise<StartedServer> {
  let master: number | undefined;
  // Registered first, because hooks run in order.
  t.after(async () => {
    if (master === undefined) return;
    const pid = master;
    if (isAlive(pid)) process.kill(pid, 'SIGTERM');
    await eventually(`${program} ends`, () => !isAlive(pid));
  });
  const server = await startServer(t, program, count, args);
  master = server.pid;
  return server;
}

function listens(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ port, host: '127.0.0.1' });
  socket.once('error', () => resolve(false)).once('connect', () => resolve(true));
  return promise.finally(() => socket.destroy());
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // No such process.
    return false;
  }
}

/** Writes a configuration, and returns its path. */
export function written(dir: string, file: string, lines: readonly string[]): string {
  const path = join(dir, file);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

/** nginx with these lines in its server; it loads files again at SIGHUP. */
export function nginx(t: TestContext, lines: readonly string[]): Promise<StartedServer> {
  return startMaster(t, 'nginx', 1, ([port], dir) => {
    const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const config = written(dir, 'nginx.conf', [
      ...['daemon off;', 'worker_processes 1;', 'error_log stderr;', `pid ${join(dir, 'nginx.pid')};`],
      ...['events {}', 'http {', '  access_log off;'],
      ...folders.map((folder) => `  ${folder}_temp_path ${join(dir, folder)};`),
      ...['  server {', `    listen 127.0.0.1:${port} ssl;`, ...lines, '  }', '}'],
    ]);
    return ['-e', 'stderr', '-c', config];
  });
}

/** The sections of a configuration of HAProxy that all have. */
export const haproxyDefaults = [
  ...['defaults', '  mode http', '  timeout client 5s', '  timeout connect 5s', '  timeout server 5s'],
];

/** HAProxy with a master process, which loads files again at SIGUSR2. */
export function haproxy(t: TestContext, { combined }: Pick<ServedFiles, 'combined'>): Promise<StartedServer> {
  return startMaster(t, 'haproxy', 1, ([port], dir) => {
    const frontend = ['frontend web', `  bind 127.0.0.1:${port} ssl crt ${combined}`];
    return ['-W', '-db', '-f', written(dir, 'haproxy.cfg', [...haproxyDefaults, ...frontend])];
  });
}

/** Apache, which loads files again at SIGHUP. */
export function apache(t: TestContext, { combined }: Pick<ServedFiles, 'combined'>): Promise<StartedServer> {
  return startMaster(t, 'apache2', 1, ([port], dir) => {
    const modules = ['mpm_event', 'ssl', 'authz_core'];
    const config = written(dir, 'apache.conf', [
      ...[`ServerRoot ${dir}`, `DefaultRuntimeDir ${dir}`, 'ServerName www.example.test'],
      ...modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
      ...[`PidFile ${join(dir, 'apache.pid')}`, `ErrorLog ${join(dir, 'error.log')}`, 'Mutex posixsem'],
      // Only for root, which Apache does not serve as.
      ...['User www-data', 'Group www-data', 'StartServers 1', 'ThreadsPerChild 4', 'MaxRequestWorkers 4'],
      ...['ServerLimit 1', 'MinSpareThreads 1', 'MaxSpareThreads 4'],
      ...[`Listen 127.0.0.1:${port}`, 'SSLEngine on', `SSLCertificateFile ${combined}`],
    ]);
    return ['-DFOREGROUND', '-f', config];
  });
}

/** Dovecot with IMAP, and POP3 if there is a second port, both by STARTTLS; it loads files again at SIGHUP. */
export function dovecot(
  t: TestContext,
  { fullchain, key }: Pick<ServedFiles, 'fullchain' | 'key'>,
  { pop3 = false } = {},
): Promise<StartedServer> {
  return startMaster(t, 'dovecot', pop3 ? 2 : 1, ([imap, second], dir) => {
    // Its processes are not root.
    chmodSync(dir, 0o755);
    const listener = (protocol: string, port: number | undefined) => [
      ...[`service ${protocol}-login {`, `  inet_listener ${protocol} {`, '    address = 127.0.0.1'],
      ...[`    port = ${port}`, '  }', `  inet_listener ${protocol}s {`, '    port = 0', '  }', '}'],
    ];
    const config = written(dir, 'dovecot.conf', [
      ...[`protocols = imap${pop3 ? ' pop3' : ''}`, `base_dir = ${join(dir, 'run')}`],
      ...[`state_dir = ${join(dir, 'state')}`, `log_path = ${join(dir, 'log')}`],
      ...['passdb {', '  driver = static', '  args = nopassword=y', '}'],
      ...['ssl = required', `ssl_cert = <${fullchain}`, `ssl_key = <${key}`],
      ...[...listener('imap', imap), ...(pop3 ? listener('pop3', second) : [])],
    ]);
    return ['-F', '-c', config];
  });
}

/** Postfix with SMTP and STARTTLS; it loads files again at SIGHUP. */
export function postfix(
  t: TestContext,
  { fullchain, key }: Pick<ServedFiles, 'fullchain' | 'key'>,
): Promise<StartedServer> {
  return startServer(t, 'master', 1, ([port], dir) => {
    const [data, queue] = [join(dir, 'data'), join(dir, 'queue')];
    // Its processes are not root.
    chmodSync(dir, 0o755);
    for (const folder of [data, queue]) mkdirSync(folder, { recursive: true });
    execFileSync('chown', ['postfix', data]);
    written(dir, 'main.cf', [
      ...['compatibility_level = 3.6', `queue_directory = ${queue}`, `data_directory = ${data}`],
      ...['inet_interfaces = 127.0.0.1', 'inet_protocols = ipv4', 'myhostname = www.example.test'],
      ...[`maillog_file_prefixes = ${dir}`, `maillog_file = ${join(dir, 'log')}`],
      ...['alias_maps =', 'alias_database =', 'smtpd_tls_security_level = may'],
      `smtpd_tls_chain_files = ${key}, ${fullchain}`,
    ]);
    written(dir, 'master.cf', [
      `127.0.0.1:${port} inet n - n - - smtpd`,
      ...['tlsmgr unix - - n - 1 tlsmgr', 'rewrite unix - - n - - trivial-rewrite'],
      ...['proxymap unix - - n - - proxymap', 'anvil unix - - n - 1 anvil'],
      ...['cleanup unix n - n - 0 cleanup', 'postlog unix-dgram n - n - 1 postlogd'],
    ]);
    execFileSync('postfix', ['-c', dir, 'check'], { stdio: 'ignore' });
    return ['-c', dir, '-d'];
  });
}
