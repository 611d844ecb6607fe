/** `vault serve` as a process: the line it prints, the addresses it cannot have, and how it stops. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { eventually } from '../../harness/eventually.ts';
import { fromExecutable, type RunningVault, serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const dir = mkdtempSync(join(tmpdir(), 'vault-serve-'));
after(() => rmSync(dir, { recursive: true }));

/** Resolves once the server has logged the message. */
async function logged(server: RunningVault, message: string): Promise<void> {
  await eventually(
    () => `"${message}" in: ${server.log()}`,
    () => server.log().includes(`"msg":"${message}"`),
  );
}

/** What `vault serve` prints on stdout until SIGTERM ends it, which it gets after the first line. */
async function announcement(...args: string[]): Promise<string> {
  const [program, ...first] = fromExecutable;
  const command = [...first, 'serve', '--data-dir', dir, ...args];
  const child = spawn(program, command, { stdio: ['ignore', 'pipe', 'ignore'] });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
    if (stdout.includes('\n')) child.kill('SIGTERM');
  });
  const [code] = await once(child, 'close');
  assert.equal(code, 0);
  return stdout;
}

/** A connection on which a whole request was answered and the first half of another has arrived. */
async function requestInFlight(server: RunningVault): Promise<{ socket: Socket; received: () => string }> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  let received = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    received += chunk;
  });
  socket.on('error', () => {
    // A server that ends at once resets the connection.
  });
  // Both in one write, so that the answer to the first shows that the server has the half of the second too.
  socket.write('GET /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\nGET /api/v1/health HTTP/1.1\r\nHost: a\r\n');
  while (!received.includes('"status":"ok"')) await once(socket, 'data');
  received = '';
  return { socket, received: () => received };
}

test('stdout has exactly one line, the address, even with port 0', async () => {
  assert.match(await announcement('--listen', '[::1]:0'), /^listening on http:\/\/\[::1\]:\d+\n$/);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`after ${signal}, the server accepts no new requests, finishes the one in flight and exits with code 0`, async (t) => {
    const server = await serve(t, dir);
    const { socket, received } = await requestInFlight(server);
    const ended = server.end(signal);
    await logged(server, 'stopping');
    await assert.rejects(fetch(`${server.url}/api/v1/health`));
    socket.write('\r\n');
    await once(socket, 'close');
    assert.match(received(), /^HTTP\/1\.1 200 OK\r\n.*"status":"ok"/s);
    assert.deepEqual(await ended, { code: 0, signal: null });
    assert.match(server.log(), /"msg":"stopped"\}\n$/);
    assert.deepEqual(readdirSync(dir).sort(), ['master.key', 'vault.db', 'vault.mark']);
  });
}

test('a second signal ends the server immediately, without waiting for requests in flight', async (t) => {
  const server = await serve(t, dir);
  const { socket } = await requestInFlight(server);
  process.kill(server.pid, 'SIGTERM');
  await logged(server, 'stopping');
  assert.deepEqual(await server.end('SIGTERM'), { code: null, signal: 'SIGTERM' });
  assert.doesNotMatch(server.log(), /"msg":"stopped"/);
  socket.destroy();
});

test('idle connections do not delay a shutdown', async (t) => {
  const server = await serve(t, dir);
  const response = await fetch(`${server.url}/api/v1/health`, { headers: { Connection: 'keep-alive' } });
  await response.text();
  assert.deepEqual(await server.end(), { code: 0, signal: null });
  assert.doesNotMatch(server.log(), /closed connections with requests in flight/);
});

/** Runs `vault serve` that is to fail, and checks the form of what it says. */
async function refused(args: readonly string[], launch: Parameters<typeof vault>[1] = {}): Promise<string> {
  const { code, stdout, stderr } = await vault(['serve', ...args], launch);
  assert.deepEqual({ code, stdout }, { code: 1, stdout: '' }, stderr);
  assert.doesNotMatch(stderr, /\n\s+at /);
  return stderr.replace(/^\{.*\}\n/gm, '');
}

test('a port that another program uses is reported', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  assert.equal(
    await refused(['--data-dir', dir, '--listen', `127.0.0.1:${port}`]),
    `vault: cannot listen on 127.0.0.1:${port}: the port is already in use\n` +
      '  Stop the other program, or choose another port with --listen.\n',
  );
});

test('a listen address that this host does not have is reported', async () => {
  assert.equal(
    await refused(['--data-dir', dir, '--listen', '192.0.2.1:8080', '--insecure-http']),
    'vault: cannot listen on 192.0.2.1:8080: this host does not have the address\n' +
      '  Set --listen to an address of this host, such as 127.0.0.1:8080.\n',
  );
});

test('a port that the user has no permission for is reported', mayNotListenOn(80), async (t) => {
  const data = tempDir(t);
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  if (nobody.uid !== undefined) chownSync(data, nobody.uid, nobody.gid);
  assert.equal(
    await refused(['--data-dir', data, '--listen', '127.0.0.1:80'], nobody),
    'vault: cannot listen on 127.0.0.1:80: permission denied for this port\n' +
      '  Choose a port of 1024 or higher with --listen, or grant CAP_NET_BIND_SERVICE.\n',
  );
});

test('plain HTTP beyond loopback is rejected before anything is created, unless --insecure-http is set', async (t) => {
  const data = join(tempDir(t), 'data');
  for (const host of ['0.0.0.0', '[::]', '']) {
    const stderr = await refused(['--data-dir', data, '--listen', `${host}:0`]);
    assert.match(
      stderr,
      /^vault: refusing plain HTTP on \S+: private keys would cross the network in clear text\n {2}Serve HTTPS with --tls-certificate NAME .* --tls-cert-file .*; or listen on 127\.0\.0\.1 .*; or .* --insecure-http\.\n$/,
    );
  }
  assert.equal(existsSync(data), false);
  const asked = await announcement('--listen', '0.0.0.0:0', '--insecure-http');
  assert.match(asked, /^listening on http:\/\/0\.0\.0\.0:\d+\n$/);
});

function mayNotListenOn(port: number): { skip?: string } {
  const setting = '/proc/sys/net/ipv4/ip_unprivileged_port_start';
  const first = existsSync(setting) ? Number(readFileSync(setting, 'utf8')) : 1024;
  return port < first ? {} : { skip: `here every user may listen on port ${port}` };
}
