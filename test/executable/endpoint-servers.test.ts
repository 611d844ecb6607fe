/** Endpoints that are real servers: what nginx, HAProxy, Postfix, Dovecot and PostgreSQL serve, found by a vault. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseCertName } from '../../src/base/cert-name.ts';
import { realWorld, type World } from '../../src/base/world.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { importCertificate } from '../../src/domain/certificates/certificate-import.ts';
import { stapledChain } from '../harness/endpoints/stapled-chain.ts';
import { checked, endpointAt, identityIn } from '../harness/endpoints/vault-endpoints.ts';
import { eventually } from '../harness/eventually.ts';
import { makeCertificate, renewCertificate } from '../harness/http/fixtures.ts';
import { needsPostgres } from '../harness/postgres/binaries.ts';
import { startPostgres } from '../harness/postgres/postgres.ts';
import { findProgram, needs } from '../harness/processes/missing-program.ts';
import { type StartedServer, startOnFreePorts } from '../harness/processes/port.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { testVault } from '../harness/test-vault.ts';

const name = 'www.example.test';

/** A vault with the real clock and the certificate `web`, and the files of its current version in a folder. */
async function scene(t: TestContext) {
  const { vault } = await testVault<World>(t, { world: realWorld });
  await makeCertificate(vault, 'web', [name]);
  const dir = tempDir(t);
  const paths = {
    fullchain: join(dir, 'fullchain.crt'),
    key: join(dir, 'private.key'),
    combined: join(dir, 'combined.pem'),
  };
  const install = async () => {
    const { key, cert } = await identityIn(vault, 'web');
    writeFileSync(paths.fullchain, cert);
    writeFileSync(paths.key, key);
    writeFileSync(paths.combined, cert + key);
  };
  await install();
  return { vault, dir, paths, install };
}

/** Starts a server that listens on its ports when it is ready. */
function serve(
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

function listens(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ port, host: '127.0.0.1' });
  socket.once('error', () => resolve(false)).once('connect', () => resolve(true));
  return promise.finally(() => socket.destroy());
}

/** Writes a configuration, and returns its path. */
function written(dir: string, file: string, lines: readonly string[]): string {
  const path = join(dir, file);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

async function nginx(t: TestContext, lines: readonly string[]): Promise<StartedServer> {
  let master: number | undefined;
  // A signal that it handles, because its workers would outlive a master that is killed.
  t.after(async () => {
    if (master === undefined) return;
    const pid = master;
    process.kill(pid, 'SIGTERM');
    await eventually('nginx ends', () => !isAlive(pid));
  });
  const server = await serve(t, 'nginx', 1, ([port], dir) => {
    const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const config = written(dir, 'nginx.conf', [
      ...['daemon off;', 'worker_processes 1;', 'error_log stderr;', `pid ${join(dir, 'nginx.pid')};`],
      ...['events {}', 'http {', '  access_log off;'],
      ...folders.map((folder) => `  ${folder}_temp_path ${join(dir, folder)};`),
      ...['  server {', `    listen 127.0.0.1:${port} ssl;`, ...lines, '  }', '}'],
    ]);
    return ['-e', 'stderr', '-c', config];
  });
  master = server.pid;
  return server;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // No such process.
    return false;
  }
}

test(
  'nginx serves the version that it loaded last, until it is reloaded',
  needs('nginx', ['/usr/sbin']),
  async (t) => {
    const { vault, paths, install } = await scene(t);
    const { ports, pid } = await nginx(t, [
      ...[
        `ssl_certificate ${paths.fullchain};`,
        `ssl_certificate_key ${paths.key};`,
        'ssl_protocols TLSv1.3;',
      ],
    ]);
    const id = await endpointAt(vault, ports[0] ?? 0, { certificate: 'web' });
    const first = await checked(vault, id);
    assert.deepEqual(
      [first.state, first.version, first.verifies, first.tls_version],
      ['current', 1, true, 'TLSv1.3'],
    );
    await renewCertificate(vault, 'web');
    await install();
    const { version, current_version } = await checked(vault, id);
    assert.deepEqual(
      [version, current_version],
      [1, 2],
      'the new files are in place, but nginx does not know',
    );
    process.kill(pid, 'SIGHUP');
    await eventually('nginx serves version 2', async () => (await checked(vault, id)).version === 2);
  },
);

test('nginx staples an OCSP response', {
  ...needs('nginx', ['/usr/sbin']),
  ...needs('openssl'),
}, async (t) => {
  const { vault, dir, paths } = await scene(t);
  const { identity, response } = stapledChain(tempDir(t));
  const sources = [{ name: 'bundle.pem', bytes: Buffer.from(identity.cert + identity.key) }];
  await importCertificate(vault, localCli, { name: parseCertName('imported') ?? assert.fail(), sources });
  writeFileSync(paths.combined, identity.cert + identity.key);
  writeFileSync(join(dir, 'ocsp.der'), response);
  const { ports } = await nginx(t, [
    ...[`ssl_certificate ${paths.combined};`, `ssl_certificate_key ${paths.combined};`],
    ...['ssl_stapling on;', `ssl_stapling_file ${join(dir, 'ocsp.der')};`],
  ]);
  const id = await endpointAt(vault, ports[0] ?? 0, { certificate: 'imported' });
  const { state, ocsp_stapled } = await checked(vault, id);
  assert.deepEqual([state, ocsp_stapled], ['current', true]);
});

test(
  'HAProxy serves combined.pem by server name, and demands certificates of clients',
  needs('haproxy', ['/usr/sbin']),
  async (t) => {
    const { vault, dir, paths } = await scene(t);
    await makeCertificate(vault, 'other', ['other.example.test']);
    const { key, cert } = await identityIn(vault, 'other');
    const other = written(dir, 'other.pem', [cert + key]);
    const { ports } = await serve(t, 'haproxy', 2, ([plain, demanding], folder) => {
      const config = written(folder, 'haproxy.cfg', [
        ...['defaults', '  mode http', '  timeout client 5s', '  timeout connect 5s', '  timeout server 5s'],
        ...['frontend web', `  bind 127.0.0.1:${plain} ssl crt ${paths.combined} crt ${other}`],
        ...[
          'frontend closed',
          `  bind 127.0.0.1:${demanding} ssl crt ${paths.combined} ca-file ${paths.fullchain} verify required`,
        ],
      ]);
      return ['-db', '-f', config];
    });
    const [plain = 0, demanding = 0] = ports;
    for (const [port, certificate] of [
      [plain, 'web'],
      [plain, 'other'],
      [demanding, 'web'],
    ] as const) {
      const id = await endpointAt(vault, port, { certificate });
      const { state, reason, version } = await checked(vault, id);
      assert.deepEqual([state, reason, version], ['current', null, 1], `${certificate} at ${port}`);
    }
    const wrong = await endpointAt(vault, plain, {
      certificate: 'other',
      server_name: 'unknown.example.test',
    });
    assert.equal((await checked(vault, wrong)).state, 'unknown');
  },
);

// They start processes of users of their own.
const isRoot = process.getuid?.() === 0;
const asRoot = (program: string) =>
  isRoot ? needs(program, ['/usr/sbin']) : { skip: `only root can start ${program}` };

/** Its packages for IMAP and POP3 are two. */
const hasPop3 = existsSync('/usr/lib/dovecot/pop3');

test(
  `Dovecot switches to TLS by STARTTLS of IMAP${hasPop3 ? ' and by STLS of POP3' : ''}`,
  asRoot('dovecot'),
  async (t) => {
    const { vault, paths } = await scene(t);
    const { ports } = await serve(t, 'dovecot', hasPop3 ? 2 : 1, ([imap, pop3], dir) => {
      // Its processes are not root.
      chmodSync(dir, 0o755);
      const listener = (protocol: string, port: number | undefined) => [
        ...[`service ${protocol}-login {`, `  inet_listener ${protocol} {`, '    address = 127.0.0.1'],
        ...[`    port = ${port}`, '  }', `  inet_listener ${protocol}s {`, '    port = 0', '  }', '}'],
      ];
      const config = written(dir, 'dovecot.conf', [
        ...[
          `protocols = imap${hasPop3 ? ' pop3' : ''}`,
          `base_dir = ${join(dir, 'run')}`,
          `state_dir = ${join(dir, 'state')}`,
        ],
        ...['passdb {', '  driver = static', '  args = nopassword=y', '}', `log_path = ${join(dir, 'log')}`],
        ...['ssl = required', `ssl_cert = <${paths.fullchain}`, `ssl_key = <${paths.key}`],
        ...[...listener('imap', imap), ...(hasPop3 ? listener('pop3', pop3) : [])],
      ]);
      return ['-F', '-c', config];
    });
    for (const [at, starttls] of (hasPop3 ? (['imap', 'pop3'] as const) : (['imap'] as const)).entries()) {
      const id = await endpointAt(vault, ports[at] ?? 0, { certificate: 'web', starttls });
      const { state, reason } = await checked(vault, id);
      assert.deepEqual([state, reason], ['current', null], starttls);
    }
    const direct = await endpointAt(vault, ports[0] ?? 0, { server_name: 'direct.example.test' });
    assert.equal(
      (await checked(vault, direct)).reason,
      'the server does not speak TLS on this port from the first byte',
    );
  },
);

test('Postfix switches to TLS by STARTTLS of SMTP', asRoot('postfix'), async (t) => {
  const { vault, paths } = await scene(t);
  const { ports } = await serve(t, 'master', 1, ([port], dir) => {
    const [data, queue] = [join(dir, 'data'), join(dir, 'queue')];
    // Its processes are not root.
    chmodSync(dir, 0o755);
    for (const folder of [data, queue]) mkdirSync(folder, { recursive: true });
    execFileSync('chown', ['postfix', data]);
    written(dir, 'main.cf', [
      ...['compatibility_level = 3.6', `queue_directory = ${queue}`, `data_directory = ${data}`],
      ...['inet_interfaces = 127.0.0.1', 'inet_protocols = ipv4', `myhostname = ${name}`],
      ...[`maillog_file_prefixes = ${dir}`, `maillog_file = ${join(dir, 'log')}`],
      ...['alias_maps =', 'alias_database =', 'smtpd_tls_security_level = may'],
      `smtpd_tls_chain_files = ${paths.key}, ${paths.fullchain}`,
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
  const id = await endpointAt(vault, ports[0] ?? 0, { certificate: 'web', starttls: 'smtp' });
  const { state, reason, version } = await checked(vault, id);
  assert.deepEqual([state, reason, version], ['current', null, 1]);
});

test(
  'PostgreSQL switches to TLS by an SSLRequest, and says if it has none',
  needsPostgres('embedded'),
  async (t) => {
    const { vault } = await scene(t);
    const { cert: certificate, key } = await identityIn(vault, 'web');
    const { port } = await startPostgres(t, { tls: { certificate, key } });
    const id = await endpointAt(vault, port, { certificate: 'web', starttls: 'postgres' });
    const { state, reason } = await checked(vault, id);
    assert.deepEqual([state, reason], ['current', null]);
    const plain = await startPostgres(t);
    const without = await endpointAt(vault, plain.port, { certificate: 'web', starttls: 'postgres' });
    assert.equal((await checked(vault, without)).reason, 'the server does not offer TLS');
  },
);
