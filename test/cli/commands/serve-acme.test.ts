/** `vault serve` with listeners for challenges: they answer, they serve nothing else, and they come and go with it. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import { updateRenewal } from '../../../src/db/tables/renewals/renewals.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import { eventually } from '../../harness/eventually.ts';
import { putChallenge } from '../../harness/http/acme-fixtures.ts';
import { makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { type RunningVault, serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

const path = '/.well-known/acme-challenge/some-token';
const http = {
  type: 'http-01',
  identifier: 'www.example.test',
  token: 'some-token',
  key_authorization: 'some-token.print',
};
const tls = { ...http, type: 'tls-alpn-01' };

/** A field of the line that the server logs with this message. */
async function logged(server: RunningVault, message: string, field: string): Promise<string> {
  const line = await eventually(
    () => `"${message}" in: ${server.log()}`,
    () =>
      server
        .log()
        .split('\n')
        .find((text) => text.includes(`"msg":"${message}"`)),
  );
  return String(JSON.parse(line)[field]);
}

/** A directory with a vault in which both challenges are up, for a renewal that another process works on. */
async function vaultWithChallenges(t: TestContext): Promise<string> {
  const { vault: made, dataDir, close } = await testVault(t);
  await makeCertificate(made, 'www');
  const { id } = await requestRenewal(made, localCli, 'www');
  await made.db.write((writer) =>
    updateRenewal(writer, id, {
      status: 'running',
      lease_owner: 'elsewhere',
      lease_expires_at: Date.now() + 60_000,
    }),
  );
  for (const challenge of [http, tls]) await putChallenge(made, { ...challenge, renewal_id: id });
  await close();
  return dataDir;
}

async function takenPort(t: TestContext): Promise<number> {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  return (other.address() as AddressInfo).port;
}

test('--acme-http-listen answers challenges and nothing else, and stops with the server', async (t) => {
  const dataDir = await vaultWithChallenges(t);
  const server = await serve(t, dataDir, { args: ['--acme-http-listen', '127.0.0.1:0'] });
  const url = await logged(server, 'listening for http-01 challenges', 'url');
  assert.match(url, /^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
  for (const base of [url, server.url]) {
    const response = await fetch(base + path);
    assert.deepEqual([response.status, await response.text()], [200, 'some-token.print'], base);
  }
  const others = [
    '/',
    '/api/v1/health',
    '/api/v1/openapi.json',
    '/api/v1/certificates',
    '/client/install.sh',
    '/.well-known/',
  ];
  for (const other of others) {
    const response = await fetch(url + other);
    assert.equal(response.status, 404, other);
    assert.equal(((await response.json()) as { code: string }).code, 'not_found');
  }
  assert.deepEqual(await server.end(), { code: 0, signal: null });
  await assert.rejects(fetch(url + path));
});

test('--acme-tls-listen answers challenges by acme-tls/1 and stops with the server', async (t) => {
  const dataDir = await vaultWithChallenges(t);
  const server = await serve(t, dataDir, { args: ['--acme-tls-listen', '127.0.0.1:0'] });
  const address = await logged(server, 'listening for tls-alpn-01 challenges', 'address');
  const port = Number(/^127\.0\.0\.1:([1-9]\d*)$/.exec(address)?.[1]);
  const socket = connect({
    ...{ port, host: '127.0.0.1', servername: 'www.example.test' },
    ...{ ALPNProtocols: ['acme-tls/1'], rejectUnauthorized: false },
  });
  await once(socket, 'secureConnect');
  assert.equal(socket.alpnProtocol, 'acme-tls/1');
  assert.equal(socket.getPeerX509Certificate()?.subjectAltName, 'DNS:www.example.test');
  socket.resume();
  await once(socket, 'close');
  const silent = connect({ port, host: '127.0.0.1' });
  silent.on('error', () => {
    // It asks for no protocol and is refused.
  });
  assert.deepEqual(await server.end(), { code: 0, signal: null });
});

for (const option of ['--listen', '--acme-http-listen', '--acme-tls-listen']) {
  test(`a port for ${option} that is already in use is reported with the option, and serve exits`, async (t) => {
    const port = await takenPort(t);
    const free = ['--listen', '--acme-http-listen', '--acme-tls-listen'].flatMap((name) => [
      name,
      `127.0.0.1:${name === option ? port : 0}`,
    ]);
    const { code, stdout, stderr } = await vault(['serve', '--data-dir', tempDir(t), ...free]);
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' }, stderr);
    assert.equal(
      stderr.replace(/^\{.*\}\n/gm, ''),
      `vault: cannot listen on 127.0.0.1:${port}: the port is already in use\n` +
        `  Stop the other program, or choose another port with ${option}.\n`,
    );
  });
}
