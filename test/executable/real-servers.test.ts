/** The exported files in the servers that they are for: each starts with them and serves the whole chain. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { openssl } from '../harness/ca/openssl-chain.ts';
import { needsPostgres } from '../harness/postgres/binaries.ts';
import { startPostgres } from '../harness/postgres/postgres.ts';
import { quickJava } from '../harness/processes/java.ts';
import { findProgram, needs } from '../harness/processes/missing-program.ts';
import { startOnFreePorts } from '../harness/processes/port.ts';
import { vault } from '../harness/processes/vault-process.ts';

const password = 'changeit';
const shared = mkdtempSync(join(tmpdir(), 'vault-servers-'));
after(() => rmSync(shared, { recursive: true, force: true }));

let exported: Promise<string> | undefined;

/** A directory with all files of a certificate of the private CA. */
function files(): Promise<string> {
  exported ??= (async () => {
    const data = join(shared, 'data');
    const out = join(shared, 'files');
    writeFileSync(join(shared, 'password'), `${password}\n`);
    const names = ['fullchain.crt', 'private.key', 'combined.pem', 'keystore.p12'];
    for (const args of [
      ['create', '--domain=www.example.test'],
      [
        ...['export', `--out=${out}`, `--keystore-password-file=${join(shared, 'password')}`],
        ...names.map((name) => `--file=${name}`),
      ],
    ]) {
      const { code, stderr } = await vault(['certificate', ...args, '--name=www', '--data-dir', data]);
      assert.equal(code, 0, stderr);
    }
    return out;
  })();
  return exported;
}

/** The chain that a server presents, as PEM; empty if it does not respond. */
function presented(port: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({
    port,
    host: '127.0.0.1',
    servername: 'www.example.test',
    rejectUnauthorized: false,
  });
  socket.once('error', () => resolve(''));
  socket.once('secureConnect', () => {
    const chain: string[] = [];
    let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
    while (next?.raw !== undefined) {
      chain.push(new X509Certificate(next.raw).toString());
      next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
    }
    socket.destroy();
    resolve(chain.join(''));
  });
  return promise;
}

/** Starts a server on a port of its own and fails unless it presents the full chain. */
async function serves(
  t: TestContext,
  program: string,
  launch: (port: number, dir: string, from: string) => readonly string[],
): Promise<void> {
  const from = await files();
  const fullchain = readFileSync(join(from, 'fullchain.crt'), 'utf8');
  let seen = '';
  await startOnFreePorts(t, 1, ([port = 0], dir) => ({
    program: findProgram(program, ['/usr/sbin', '/usr/lib/postfix/sbin']) ?? program,
    args: launch(port, dir, from),
    isReady: async () => {
      seen = await presented(port);
      return seen !== '';
    },
  }));
  assert.equal(seen, fullchain);
}

/** Writes a configuration, and returns its path. */
function written(dir: string, name: string, lines: readonly string[]): string {
  const path = join(dir, name);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

test('HAProxy serves combined.pem', needs('haproxy', ['/usr/sbin']), (t) =>
  serves(t, 'haproxy', (port, dir, from) => {
    const config = written(dir, 'haproxy.cfg', [
      'defaults',
      '  mode http',
      '  timeout client 5s',
      '  timeout connect 5s',
      '  timeout server 5s',
      'frontend web',
      `  bind 127.0.0.1:${port} ssl crt ${join(from, 'combined.pem')}`,
    ]);
    return ['-db', '-f', config];
  }),
);

test('nginx serves fullchain.crt with private.key', needs('nginx', ['/usr/sbin']), (t) =>
  serves(t, 'nginx', (port, dir, from) => {
    const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const config = written(dir, 'nginx.conf', [
      'daemon off;',
      'master_process off;',
      'error_log stderr;',
      `pid ${join(dir, 'nginx.pid')};`,
      'events {}',
      'http {',
      '  access_log off;',
      ...folders.map((folder) => `  ${folder}_temp_path ${join(dir, folder)};`),
      '  server {',
      `    listen 127.0.0.1:${port} ssl;`,
      `    ssl_certificate ${join(from, 'fullchain.crt')};`,
      `    ssl_certificate_key ${join(from, 'private.key')};`,
      '  }',
      '}',
    ]);
    return ['-e', 'stderr', '-c', config];
  }),
);

test('Apache serves combined.pem', needs('apache2', ['/usr/sbin']), (t) =>
  serves(t, 'apache2', (port, dir, from) => {
    const modules = ['mpm_event', 'ssl', 'authz_core'];
    const config = written(dir, 'apache.conf', [
      `ServerRoot ${dir}`,
      `DefaultRuntimeDir ${dir}`,
      ...modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
      'ServerName www.example.test',
      `PidFile ${join(dir, 'apache.pid')}`,
      `ErrorLog ${join(dir, 'error.log')}`,
      'Mutex posixsem',
      // Only for root, which Apache does not serve as.
      'User www-data',
      'Group www-data',
      `Listen 127.0.0.1:${port}`,
      'SSLEngine on',
      `SSLCertificateFile ${join(from, 'combined.pem')}`,
    ]);
    return ['-X', '-f', config];
  }),
);

test('an HTTPS server in Java serves keystore.p12', needs('java'), (t) =>
  serves(t, 'java', (port, dir, from) => {
    const source = written(dir, 'Server.java', [
      'import com.sun.net.httpserver.*;',
      'import java.io.*; import java.net.*; import java.nio.file.*; import java.security.*; import javax.net.ssl.*;',
      'class Server {',
      '  public static void main(String[] args) throws Exception {',
      '    char[] password = Files.readString(Path.of(args[1])).strip().toCharArray();',
      '    KeyStore store = KeyStore.getInstance(new File(args[0]), password);',
      '    KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());',
      '    keys.init(store, password);',
      '    SSLContext context = SSLContext.getInstance("TLS");',
      '    context.init(keys.getKeyManagers(), null, null);',
      '    InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[2]));',
      '    HttpsServer server = HttpsServer.create(address, 0);',
      '    server.setHttpsConfigurator(new HttpsConfigurator(context));',
      '    server.start();',
      '  }',
      '}',
    ]);
    return [...quickJava, source, join(from, 'keystore.p12'), join(shared, 'password'), String(port)];
  }),
);

// They start processes of users of their own.
const isRoot = process.getuid?.() === 0;
const asRoot = (program: string) =>
  isRoot ? needs(program, ['/usr/sbin']) : { skip: `only root can start ${program}` };

test('Dovecot serves fullchain.crt with private.key', asRoot('dovecot'), (t) =>
  serves(t, 'dovecot', (port, dir, from) => {
    const config = written(dir, 'dovecot.conf', [
      'protocols = imap',
      `base_dir = ${join(dir, 'run')}`,
      `state_dir = ${join(dir, 'state')}`,
      'log_path = /dev/stderr',
      'ssl = required',
      `ssl_cert = <${join(from, 'fullchain.crt')}`,
      `ssl_key = <${join(from, 'private.key')}`,
      'service imap-login {',
      '  inet_listener imap {',
      '    port = 0',
      '  }',
      '  inet_listener imaps {',
      '    address = 127.0.0.1',
      `    port = ${port}`,
      '    ssl = yes',
      '  }',
      '}',
    ]);
    return ['-F', '-c', config];
  }),
);

test('Postfix serves private.key with fullchain.crt', asRoot('postfix'), (t) =>
  serves(t, 'master', (port, dir, from) => {
    const [data, queue] = [join(dir, 'data'), join(dir, 'queue')];
    // Its processes are not root.
    chmodSync(dir, 0o755);
    for (const folder of [data, queue]) mkdirSync(folder);
    execFileSync('chown', ['postfix', data]);
    written(dir, 'main.cf', [
      'compatibility_level = 3.6',
      `queue_directory = ${queue}`,
      `data_directory = ${data}`,
      'inet_interfaces = 127.0.0.1',
      'inet_protocols = ipv4',
      'myhostname = www.example.test',
      `maillog_file_prefixes = ${dir}`,
      `maillog_file = ${join(dir, 'log')}`,
      'alias_maps =',
      'alias_database =',
      `smtpd_tls_chain_files = ${join(from, 'private.key')}, ${join(from, 'fullchain.crt')}`,
    ]);
    written(dir, 'master.cf', [
      `127.0.0.1:${port} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes`,
      ...['tlsmgr unix - - n - 1 tlsmgr', 'rewrite unix - - n - - trivial-rewrite'],
      ...['proxymap unix - - n - - proxymap', 'anvil unix - - n - 1 anvil'],
      ...['cleanup unix n - n - 0 cleanup', 'postlog unix-dgram n - n - 1 postlogd'],
    ]);
    execFileSync('postfix', ['-c', dir, 'check'], { stdio: 'ignore' });
    return ['-c', dir, '-d'];
  }),
);

const both = { ...needs('openssl'), ...needsPostgres('embedded') };

test('PostgreSQL serves fullchain.crt with private.key', both, async (t) => {
  const from = await files();
  const certificate = readFileSync(join(from, 'fullchain.crt'), 'utf8');
  const key = readFileSync(join(from, 'private.key'), 'utf8');
  const { port } = await startPostgres(t, { tls: { certificate, key } });
  const to = ['-connect', `127.0.0.1:${port}`, '-starttls', 'postgres'];
  const shown = openssl(shared, 's_client', ...to, '-showcerts').toString();
  const chain = shown.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g) ?? [];
  assert.equal(chain.slice(0, 2).join(''), certificate);
});
