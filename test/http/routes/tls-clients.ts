/**
 * TLS clients of others that trust only the roots in a file: each connects to a server on loopback, and says whether it
 * accepted it.
 */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { quickJava } from '../../harness/processes/java.ts';
import { findProgram } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const run = promisify(execFile);

export const tlsPrograms = ['openssl', 'gnutls-cli', 'go', 'java', 'curl'] as const;

/** What a client says: `accepted`, or why not. */
export type Verdicts = Readonly<Record<string, string>>;

const goProgram = `package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

func main() {
	roots := x509.NewCertPool()
	text, _ := os.ReadFile(os.Args[1])
	roots.AppendCertsFromPEM(text)
	connection, err := tls.Dial("tcp", os.Args[2], &tls.Config{RootCAs: roots, ServerName: os.Args[3]})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	connection.Close()
}
`;

const javaProgram = `import java.io.*;
import java.security.KeyStore;
import java.security.cert.*;
import javax.net.ssl.*;

public class Client {
  public static void main(String[] given) throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    int count = 0;
    try (InputStream file = new FileInputStream(given[0])) {
      for (Certificate one : CertificateFactory.getInstance("X.509").generateCertificates(file)) {
        store.setCertificateEntry("root" + count++, one);
      }
    }
    TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
    factory.init(store);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, factory.getTrustManagers(), null);
    try (SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket("127.0.0.1", Integer.parseInt(given[1]))) {
      SSLParameters parameters = socket.getSSLParameters();
      parameters.setEndpointIdentificationAlgorithm("HTTPS");
      parameters.setServerNames(java.util.List.of(new SNIHostName(given[2])));
      socket.setSSLParameters(parameters);
      socket.startHandshake();
    }
  }
}
`;

export type TlsClients = {
  /** What each client says of a server with this chain and key (PEM) for \`host\`, trusting the roots in this PEM. */
  readonly judge: (served: { fullchain: string; key: string }, roots: string) => Promise<Verdicts>;
};

/** The clients that this machine has, and Node itself; they connect to servers for `host`. */
export async function tlsClients(t: TestContext, host: string): Promise<TlsClients> {
  const dir = tempDir(t);
  const has = (program: string) => findProgram(program) !== undefined;
  if (has('go')) {
    writeFileSync(join(dir, 'main.go'), goProgram);
    const env = { ...process.env, GO111MODULE: 'off' };
    await run('go', ['build', '-o', join(dir, 'go-client'), join(dir, 'main.go')], { env });
  }
  if (has('java')) writeFileSync(join(dir, 'Client.java'), javaProgram);
  let files = 0;
  const judge: TlsClients['judge'] = async ({ fullchain, key }, roots) => {
    const file = join(dir, `roots-${++files}.pem`);
    writeFileSync(file, roots);
    const server = createServer({ cert: fullchain, key }, (_, response) => response.end('well'));
    const port = await listening(server);
    const commands: Record<string, readonly string[]> = {
      openssl: [
        ...['openssl', 's_client', '-connect', `127.0.0.1:${port}`, '-servername', host],
        ...['-verify_return_error', '-verify_hostname', host, '-x509_strict'],
        ...['-no-CApath', '-no-CAstore', '-CAfile', file],
      ],
      'gnutls-cli': [
        ...['gnutls-cli', '--x509cafile', file, '--sni-hostname', host, '--verify-hostname', host],
        ...['--port', `${port}`, '127.0.0.1'],
      ],
      curl: [
        ...['curl', '-fsS', '--noproxy', '*', '--cacert', file, '--capath', '/nonexistent'],
        ...['--resolve', `${host}:${port}:127.0.0.1`, `https://${host}:${port}/`],
      ],
      go: [join(dir, 'go-client'), file, `127.0.0.1:${port}`, host],
      java: ['java', ...quickJava, join(dir, 'Client.java'), file, `${port}`, host],
    };
    try {
      const verdicts: [string, string][] = [
        ['node', await nodeVerdict(port, host, await readFile(file, 'utf8'))],
      ];
      for (const program of tlsPrograms) {
        const [path = '', ...args] = commands[program] ?? [];
        if (has(program)) verdicts.push([program, await verdictOf(path, args)]);
      }
      return Object.fromEntries(verdicts);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  };
  return { judge };
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

async function verdictOf(path: string, args: readonly string[]): Promise<string> {
  const running = run(path, args);
  // Those that talk after the handshake read their input until it ends.
  running.child.stdin?.end();
  return running.then(
    () => 'accepted',
    ({ stdout, stderr, message }) => `refused: ${stderr || stdout || message}`,
  );
}

function nodeVerdict(port: number, servername: string, ca: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, servername, ca }, () => {
      socket.destroy();
      resolve('accepted');
    });
    socket.on('error', (error) => resolve(`refused: ${error.message}`));
  });
}
