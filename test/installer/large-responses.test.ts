/** A server that answers in place of the vault with data of any size: it fills no disk and delays no run. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { assertPair, leftovers, machine } from '../harness/client/installer.ts';
import { relay } from '../harness/client/relay.ts';
import { clientVault, usual } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurnOfShells } from './places.ts';

const mebibyte = 1024 * 1024;
const environment = { SERVICE_API_KEY: 'vk_public.secret', CERTIFICATE_VAULT_FETCH_SECONDS: '20' };
const tooLarge =
  /the response is larger than 4 MiB, .*, so it does not come from a vault\nTry: --server with the address/;

/** Sends letters for as long as the client reads, up to a gibibyte. */
const endless = createServer((_request, response) => {
  response.writeHead(200, { 'Certificate-Version': '1', ETag: '"x"' });
  const letters = Buffer.alloc(mebibyte, 'A');
  let sent = 0;
  const send = () => {
    while (sent < 1024 * mebibyte) {
      sent += mebibyte;
      maxSent = Math.max(maxSent, sent);
      if (!response.write(letters)) return;
    }
    response.end();
  };
  response.on('drain', send);
  send();
});
let maxSent = 0;
let endlessUrl = '';

before(async () => {
  await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve));
  endlessUrl = `http://127.0.0.1:${(endless.address() as AddressInfo).port}`;
});
after(() => {
  endless.closeAllConnections();
  endless.close();
});

for (const tool of ['curl', 'wget'] as const) {
  inTurnOfShells(
    `an endless response is rejected, with ${tool}`,
    async (t, shell) => {
      const client = machine(t, { shell, tool });
      const failed = await client.run(['--server', endlessUrl, ...usual(client)], { environment });
      assert.equal(failed.code, 10, failed.stderr);
      assert.match(failed.stderr, tooLarge);
      // No shell reports the signal that ended the download.
      assert.doesNotMatch(failed.stderr, /limit exceeded|signal|attempts/i);
      assert.ok(maxSent < 64 * mebibyte, `the server sent ${maxSent} bytes`);
      assert.deepEqual(leftoversOf(client.destination), []);
    },
    tool,
  );
}

test('an endless response is rejected, with BusyBox nc', needs('busybox'), async (t) => {
  const client = machine(t, { tool: 'nc' });
  const failed = await client.run(['--server', endlessUrl, ...usual(client)], { environment });
  assert.equal(failed.code, 10, failed.stderr);
  assert.match(failed.stderr, tooLarge);
});

test('headers of more than 64 KiB are rejected', needs('busybox'), async (t) => {
  const server = await relay(t, () => '');
  server.answer = () => ({ status: 200, headers: { 'X-Long': `x${' '.repeat(70_000)}x` } });
  const client = machine(t, { tool: 'nc' });
  const failed = await client.run(['--server', server.url, ...usual(client)], { environment });
  assert.equal(failed.code, 10, failed.stderr);
  assert.match(failed.stderr, /headers are larger than 64 KiB/);
});

test('a job keeps its files if the response is too large, and installs the next version', async (t) => {
  const vault = await clientVault(t);
  const server = await vault.relay();
  const client = machine(t);
  const installed = await vault.install(client, ['--server', server.url]);
  assert.equal(installed.code, 0, installed.stderr);
  await vault.renew();
  const kept = client.file('tls.crt');
  const run = () => client.run(['--run'], { script: client.copy() });
  for (const artifact of ['fullchain.crt', 'private.key']) {
    server.answer = (path) =>
      path.includes(artifact) ? { status: 200, body: Buffer.alloc(5 * mebibyte, 'A') } : undefined;
    const failed = await run();
    assert.equal(failed.code, 10, failed.stderr);
    assert.match(failed.stderr, tooLarge);
    assert.match(client.state('last-run'), / 10 .*larger than 4 MiB/);
    assert.equal(client.file('tls.crt'), kept);
    assertPair(client);
    assert.deepEqual(leftovers(client), []);
  }
  server.answer = () => undefined;
  const renewed = await run();
  assert.equal(renewed.code, 0, renewed.stderr);
  assert.notEqual(client.file('tls.crt'), kept);
  assertPair(client);
});

inTurnOfShells('a file that takes too long to check is rejected', async (t, shell) => {
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  // A stand-in for a file that keeps awk busy, which depends on the version of awk.
  client.fake(
    'awk',
    `case $* in *'PRIVATE KEY'*) while :; do :; done ;; esac; exec ${process.env.AWK ?? '/usr/bin/awk'} "$@"`,
  );
  const failed = await vault.install(client, [], { environment: { CERTIFICATE_VAULT_CHECK_SECONDS: '1' } });
  assert.equal(failed.code, 11, failed.stderr);
  assert.match(failed.stderr, /fullchain\.crt: the server sent an incomplete or invalid PEM file/);
  assert.deepEqual(leftoversOf(client.destination), []);
});

test('a private key that takes openssl too long to read is rejected', needs('openssl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  client.fake('openssl', 'case $1 in pkey) while :; do :; done ;; esac; exec /usr/bin/openssl "$@"');
  const failed = await vault.install(client, [], { environment: { CERTIFICATE_VAULT_CHECK_SECONDS: '1' } });
  assert.equal(failed.code, 11, failed.stderr);
  assert.match(failed.stderr, /private\.key does not match the certificate; nothing was changed/);
});

function leftoversOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
