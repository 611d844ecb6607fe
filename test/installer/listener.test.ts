/** Over plain HTTP on loopback, the installer sends nothing to a port that another user of the machine listens on. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { assertPair, machine } from '../harness/client/installer.ts';
import { clientVault, usual } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurnOfShells } from './places.ts';

const asRoot =
  process.getuid?.() === 0 && process.platform === 'linux'
    ? needs('setpriv')
    : { skip: 'only root can become another user' };
const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups'];
const key = { environment: { SERVICE_API_KEY: 'vk_public.secret', CERTIFICATE_VAULT_FETCH_TRIES: '1' } };
const refused =
  /a process of user nobody listens on \S+ port \d+, not root, .*, so nothing was sent\nTry: --listener-user nobody/;

// Prints its port, and then a line for each request. Forwards requests to the address in its second argument.
const forwarder = `
  const http = require('node:http');
  const [port, host, target] = process.argv.slice(1);
  const server = http.createServer((request, response) => {
    console.log('request');
    if (target === '') return response.writeHead(503).end();
    const { hostname, port: to } = new URL(target);
    const { method, url: path, headers } = request;
    const passed = http.request({ hostname, port: to, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    request.pipe(passed);
  });
  server.listen(Number(port), host, () => console.log(server.address().port));`;

/** A listener of `nobody`: its port, and the number of requests so far. */
async function ofNobody(
  t: TestContext,
  { port = '0', host = '127.0.0.1', target = '' } = {},
): Promise<{ port: string; requests: () => number }> {
  const child = spawn('setpriv', [...nobody, process.execPath, '-e', forwarder, port, host, target], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: '/',
  });
  t.after(() => child.kill('SIGKILL'));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  let requests = 0;
  child.stdout.on('data', (text: Buffer) => {
    requests += text.toString().split('request').length - 1;
  });
  return { port: line.toString().trim(), requests: () => requests };
}

for (const [host, url] of [
  ['127.0.0.1', '127.0.0.1'],
  ['0.0.0.0', '127.0.0.1'],
  ['0.0.0.0', 'localhost'],
  ['::', '127.0.0.1'],
  ['::1', 'localhost'],
  ['::1', '[::1]'],
  ['::ffff:127.0.0.1', '127.0.0.1'],
  ['127.0.0.1', '127.1'],
] as const) {
  test(`nothing is sent to http://${url} while another user listens on ${host}`, asRoot, async (t) => {
    const { port, requests } = await ofNobody(t, { host });
    const client = machine(t);
    const failed = await client.run(['--server', `http://${url}:${port}`, ...usual(client)], key);
    assert.equal(failed.code, 10, failed.stderr);
    assert.match(failed.stderr, refused);
    assert.equal(requests(), 0);
  });
}

inTurnOfShells('a job sends no key to a user who takes the port of a stopped vault', async (t, shell) => {
  if (asRoot.skip !== undefined) return t.skip(asRoot.skip);
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  const installed = await vault.install(client);
  assert.equal(installed.code, 0, installed.stderr);
  await vault.stop();
  const run = () => client.run(['--run'], { script: client.copy(), ...key });
  const absent = await run();
  assert.equal(absent.code, 10, absent.stderr);
  assert.match(absent.stderr, /port \d+ refused the connection\nTry: start the vault/);
  const { requests } = await ofNobody(t, { port: new URL(vault.url).port });
  const failed = await run();
  assert.equal(failed.code, 10, failed.stderr);
  assert.match(failed.stderr, refused);
  assert.equal(requests(), 0);
  assertPair(client);
});

test(
  'a job trusts only a listener of the user in --listener-user, unless --allow-http is set',
  asRoot,
  async (t) => {
    const vault = await clientVault(t);
    const { port, requests } = await ofNobody(t, { target: vault.url });
    const client = machine(t);
    const server = ['--server', `http://127.0.0.1:${port}`];
    const installed = await vault.install(client, [...server, '--listener-user', 'nobody']);
    assert.equal(installed.code, 0, installed.stderr);
    await vault.renew();
    const renewed = await client.run(['--run'], { script: client.copy() });
    assert.equal(renewed.code, 0, renewed.stderr);
    assertPair(client);
    assert.ok(requests() > 0);
    const other = await vault.install(client, [...server, '--listener-user', 'daemon']);
    assert.equal(other.code, 10, other.stderr);
    assert.match(other.stderr, refused);
    const accepted = await vault.install(client, [...server, '--allow-http']);
    assert.equal(accepted.code, 0, accepted.stderr);
  },
);

test('a job trusts the user who installs it with sudo', asRoot, async (t) => {
  const vault = await clientVault(t);
  const { port } = await ofNobody(t, { target: vault.url });
  const client = machine(t);
  const installed = await vault.install(client, ['--server', `http://127.0.0.1:${port}`], {
    environment: { SUDO_UID: '65534' },
  });
  assert.equal(installed.code, 0, installed.stderr);
  assert.match(readFileSync(join(client.copy(), '..', 'job'), 'utf8'), /^listener_user=nobody$/m);
});
