/**
 * API keys that are bound to a client certificate: neither works without the other, whatever an attacker presents. The
 * clients are real TLS clients, and the certificates those of the private CA.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { parseIdentifier } from '../../../src/base/identifier.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { issueLeaf } from '../../../src/crypto/x509/leaf-certificate.ts';
import { issueRoot } from '../../../src/crypto/x509/x509-issuance.ts';
import { changeApiKey } from '../../../src/domain/access/api-key-change.ts';
import { updateApiKeyInput } from '../../../src/domain/access/api-key-inputs.ts';
import { rotateApiKey } from '../../../src/domain/access/api-key-rotation.ts';
import { revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { undeleteCertificate } from '../../../src/domain/certificates/deleted-certificates.ts';
import { revokeVersion } from '../../../src/domain/certificates/revocation.ts';
import { parseInput, updateCertificateInput } from '../../../src/domain/inputs.ts';
import { addStagingCa } from '../../harness/ca/private-ca-fixtures.ts';
import { moveGeneration, outside } from '../../harness/database/outside-database.ts';
import { boundServer, type Pair, wanted } from '../../harness/http/client-certificates.ts';
import { eventsOf, makeCertificate, makeKey, renewCertificate } from '../../harness/http/fixtures.ts';
import { type Visit, visit } from '../../harness/http/https-client.ts';
import { httpsServer, twoLooks } from '../../harness/http/https-fixtures.ts';
import { requestText } from '../../harness/http/raw.ts';
import { testServer } from '../../harness/http/test-server.ts';
import { needs } from '../../harness/processes/missing-program.ts';

/** The status and the first sentence of a response. */
function said({ status, body }: Visit): string {
  const { detail } = JSON.parse(body) as { readonly detail: string };
  return `${status} ${detail.split(/(?<=\.) /)[0]}`;
}

const none = '403 This API key works only with its client certificate, and the client presented none.';
const other = '403 The client certificate of this connection is not the one of this API key.';

/** The reasons of all refusals in the audit log. */
function reasonsIn(dataDir: string): unknown[] {
  return eventsOf(dataDir, 'access.refuse').map(({ detail }) => detail.reason);
}

/** A certificate of another CA with all names, dates and the serial number of this one. */
async function forged({ cert }: Pair): Promise<Pair> {
  const [leaf, intermediate] = cert.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];
  assert(leaf !== undefined && intermediate !== undefined);
  const real = new X509Certificate(leaf);
  const caKey = await generatePrivateKey('ec256');
  const key = await generatePrivateKey('ec256');
  const identifier = parseIdentifier('web-1.example.test');
  assert(identifier);
  const dates = { notBefore: real.validFromDate.getTime(), notAfter: real.validToDate.getTime() };
  const serial = Buffer.from(real.serialNumber, 'hex');
  const commonName = new X509Certificate(intermediate).subject.replace('CN=', '');
  const ca = await issueRoot({ commonName, privateKey: caKey, serial, ...dates });
  const issuer = { certificate: ca, privateKey: caKey };
  const publicKey = publicKeyOf(key);
  const forgery = await issueLeaf({
    identifiers: [identifier],
    usage: 'client',
    publicKey,
    issuer,
    serial,
    ...dates,
  });
  const made = new X509Certificate(forgery);
  assert.deepEqual([made.subject, made.issuer], [real.subject, real.issuer]);
  return {
    cert: [forgery, ca].map((der) => encodePem('CERTIFICATE', der)).join(''),
    key: encodePem('PRIVATE KEY', key.expose()),
  };
}

suite('an API key that is bound to a client certificate', () => {
  test('downloads with the certificate, and gets 403 without one', async (t) => {
    const { server, bound, pairOf, ask } = await boundServer(t);
    assert.equal((await ask(bound.raw, await pairOf('web-1'))).status, 200);
    assert.equal(said(await ask(bound.raw)), none);
    assert.deepEqual(reasonsIn(server.dataDir), ['no client certificate']);
  });

  test('is needed: its certificate alone gets 401, and with an unknown key as well', async (t) => {
    const { server, bound, pairOf, ask } = await boundServer(t);
    const pair = await pairOf('web-1');
    assert.equal((await visit(server.url + wanted, pair)).status, 401);
    const unknown = `${bound.raw.slice(0, -1)}${bound.raw.endsWith('A') ? 'B' : 'A'}`;
    assert.equal((await ask(unknown, pair)).status, 401);
    assert.equal((await ask('vk_aaaaaaaaaaaa.nothing', pair)).status, 401);
  });

  test('rejects other certificates of the same CA and of another private CA', async (t) => {
    const { server, vault, bound, pairOf, ask } = await boundServer(t);
    await addStagingCa(vault);
    await makeCertificate(vault, 'web-2', ['web-1.example.test'], { usage: 'client' });
    await makeCertificate(vault, 'staged', ['web-1.example.test'], { usage: 'client', issuer: 'staging-ca' });
    for (const name of ['web-2', 'staged', 'web']) {
      assert.equal(said(await ask(bound.raw, await pairOf(name))), other, name);
    }
    assert.deepEqual(reasonsIn(server.dataDir), new Array(3).fill('other client certificate'));
  });

  test('rejects a certificate of a foreign CA with the same names and serial number', async (t) => {
    const { bound, pairOf, ask } = await boundServer(t);
    assert.equal(said(await ask(bound.raw, await forged(await pairOf('web-1')))), other);
  });

  test('rejects the same even if its fingerprint is written into the database', async (t) => {
    const { server, bound, pairOf, ask } = await boundServer(t);
    const pair = await pairOf('web-1');
    const fake = await forged(pair);
    const print = new X509Certificate(fake.cert).fingerprint256.replaceAll(':', '').toLowerCase();
    const real = new X509Certificate(pair.cert).fingerprint256.replaceAll(':', '').toLowerCase();
    const change = 'update certificate_versions set fingerprint_sha256 = ? where fingerprint_sha256 = ?';
    outside(server.dataDir, (db) => db.prepare(change).run(print, real));
    assert.equal(said(await ask(bound.raw, fake)), other);
    // Nor does it help to replace the certificates of the CA: the vault verifies with the key that it has sealed.
    const [, ca = ''] = fake.cert.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];
    outside(server.dataDir, (db) => {
      const { raw } = new X509Certificate(ca);
      db.prepare("update ca_certificates set certificate = ? where role = 'intermediate'").run(raw);
      db.prepare('update certificate_versions set chain_pem = ? where fingerprint_sha256 = ?').run(ca, print);
    });
    assert.equal(said(await ask(bound.raw, fake)), other);
  });

  test('rejects a certificate that has expired or is not valid yet by the clock of the vault', async (t) => {
    const { server, bound, pairOf, ask } = await boundServer(t);
    const pair = await pairOf('web-1');
    assert.equal((await ask(bound.raw, pair)).status, 200);
    server.world.advance(-hour);
    assert.equal(said(await ask(bound.raw, pair)), '403 The client certificate is not valid yet.');
    const left = new X509Certificate(pair.cert).validToDate.getTime() - server.world.now();
    server.world.advance(left);
    assert.equal((await ask(bound.raw, pair)).status, 200, 'at its last moment');
    server.world.advance(1);
    assert.equal(
      said(await ask(bound.raw, pair)),
      '403 The client certificate has expired, or the CA that issued it has.',
    );
  });

  test('rejects a revoked certificate from the next request on, also on an open connection', async (t) => {
    const { server, vault, bound, pairOf, ask } = await boundServer(t);
    const pair = await pairOf('web-1');
    const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false, ...pair });
    t.after(() => agent.destroy());
    const download = async () => {
      const asked = request(server.url + wanted, {
        agent,
        headers: { Authorization: `Bearer ${bound.raw}` },
      });
      asked.end();
      const [response] = await once(asked, 'response');
      return [response.statusCode, await text(response), response.socket] as const;
    };
    const [before, , socket] = await download();
    await revokeVersion(
      vault,
      localCli,
      'web-1',
      { version: undefined, reason: 'keyCompromise' },
      new AbortController().signal,
    );
    const [after, body, same] = await download();
    assert.deepEqual([before, after, same === socket], [200, 403, true]);
    assert.match(body, /The client certificate is revoked\./);
    assert.equal(said(await ask(bound.raw, pair)), '403 The client certificate is revoked.');
    assert.equal(reasonsIn(server.dataDir)[0], 'client certificate revoked');
  });

  test('works with a renewed certificate, with its superseded version, and not with a revoked one', async (t) => {
    const { vault, bound, pairOf, ask } = await boundServer(t);
    const first = await pairOf('web-1');
    await renewCertificate(vault, 'web-1');
    const second = await pairOf('web-1');
    assert.notEqual(first.cert, second.cert);
    for (const pair of [first, second]) assert.equal((await ask(bound.raw, pair)).status, 200);
    const signal = new AbortController().signal;
    await revokeVersion(vault, localCli, 'web-1', { version: 1, reason: 'superseded' }, signal);
    assert.deepEqual(
      [(await ask(bound.raw, first)).status, (await ask(bound.raw, second)).status],
      [403, 200],
    );
  });

  test('rejects a version without the extended key usage clientAuth', async (t) => {
    const { vault, bound, pairOf, ask } = await boundServer(t);
    await changeCertificate(
      vault,
      localCli,
      'web-1',
      parseInput(updateCertificateInput, { usage: 'server' }),
    );
    await renewCertificate(vault, 'web-1');
    assert.equal(
      said(await ask(bound.raw, await pairOf('web-1', 2))),
      '403 The client certificate lacks the extended key usage clientAuth.',
    );
    assert.equal((await ask(bound.raw, await pairOf('web-1', 1))).status, 200);
  });

  test('ignores headers that claim a certificate, also from a trusted proxy', async (t) => {
    const { server, bound, pairOf, ask } = await boundServer(t, { trustedProxies: '127.0.0.1' });
    const { cert } = await pairOf('web-1');
    const escaped = encodeURIComponent(cert);
    const line = Buffer.from(new X509Certificate(cert).raw).toString('base64');
    const headers = {
      'X-Client-Cert': escaped,
      'X-SSL-Client-Cert': escaped,
      'X-SSL-Client-Verify': 'SUCCESS',
      'X-Forwarded-Client-Cert': `Cert="${escaped}"`,
      'X-ARR-ClientCert': line,
      'Client-Cert': `:${line}:`,
      'X-Forwarded-For': '192.0.2.1',
      'X-Forwarded-Proto': 'https',
    };
    assert.equal(said(await ask(bound.raw, undefined, headers)), none);
    assert.equal(reasonsIn(server.dataDir).length, 1);
  });

  test('gets 403 over plain HTTP, as behind a proxy that terminates TLS, and the reason', async (t) => {
    const server = await testServer(t, { trustedProxies: '127.0.0.1' });
    await makeCertificate(server.vault, 'web');
    await makeCertificate(server.vault, 'web-1', undefined, { usage: 'client' });
    const { raw } = await makeKey(server.vault, { client_certificate: 'web-1' });
    const headers = { 'X-Forwarded-Proto': 'https', 'X-SSL-Client-Verify': 'SUCCESS' };
    const response = await server.get(wanted, raw, { headers });
    const { code, detail } = (await response.json()) as Record<string, string>;
    assert.deepEqual([response.status, code], [403, 'forbidden']);
    assert.match(detail ?? '', /this request reached the vault without TLS\. .* a proxy that terminates TLS/);
    assert.deepEqual(reasonsIn(server.dataDir), ['client certificate without TLS']);
  });

  test('is judged on its own where two keys share a connection', async (t) => {
    const { server, vault, bound, free, pairOf } = await boundServer(t);
    await makeCertificate(vault, 'web-2', undefined, { usage: 'client' });
    const second = await makeKey(vault, { client_certificate: 'web-2' });
    const pair = await pairOf('web-1');
    const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false, ...pair });
    t.after(() => agent.destroy());
    const sockets = new Set<unknown>();
    const statuses: unknown[] = [];
    for (const { raw } of [bound, second, free, bound, second]) {
      const asked = request(server.url + wanted, { agent, headers: { Authorization: `Bearer ${raw}` } });
      asked.end();
      const [response] = await once(asked, 'response');
      await text(response);
      sockets.add(response.socket);
      statuses.push(response.statusCode);
    }
    assert.deepEqual([statuses, sockets.size], [[200, 403, 200, 200, 403], 1]);
  });

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`works in a resumed session of ${version} until the certificate is revoked`, async (t) => {
      const { server, vault, bound, pairOf } = await boundServer(t);
      const { hostname, port } = new URL(server.url);
      const where = { host: hostname, port: Number(port), rejectUnauthorized: false, maxVersion: version };
      const lines = [`Authorization: Bearer ${bound.raw}`, 'Connection: close'];
      const ask = async (options: Partial<Pair> & { readonly session?: Buffer }) => {
        const socket: TLSSocket = connect({ ...where, ...options });
        let ticket: Buffer | undefined;
        socket.on('session', (bytes: Buffer) => {
          ticket = bytes;
        });
        let isResumed: boolean | undefined;
        socket.on('secureConnect', () => {
          isResumed = socket.isSessionReused();
        });
        socket.write(requestText('GET', wanted, lines));
        const response = await text(socket);
        return { status: response.slice(9, 12), isResumed, ticket };
      };
      const { ticket: session, status } = await ask(await pairOf('web-1'));
      assert(session !== undefined);
      assert.equal(status, '200');
      // Without the certificate: it is that of the session.
      const resumed = await ask({ session });
      assert.deepEqual([resumed.status, resumed.isResumed], ['200', true]);
      const signal = new AbortController().signal;
      await revokeVersion(vault, localCli, 'web-1', { version: undefined, reason: 'unspecified' }, signal);
      const revoked = await ask({ session });
      assert.deepEqual([revoked.status, revoked.isResumed], ['403', true]);
    });
  }

  test('is refused if its binding is removed or changed in the database', async (t) => {
    const { server, vault, bound, pairOf, ask } = await boundServer(t);
    await makeCertificate(vault, 'web-2', undefined, { usage: 'client' });
    const pair = await pairOf('web-1');
    assert.equal((await ask(bound.raw, pair)).status, 200);
    const idOf = (name: string) => `(select id from certificates where name = '${name}')`;
    for (const change of [
      'client_certificate_id = null, client_certificate = null',
      `client_certificate_id = ${idOf('web-2')}, client_certificate = 'web-2'`,
      `client_certificate_id = ${idOf('web-2')}, client_certificate = 'web-1'`,
    ]) {
      outside(server.dataDir, (db) => db.prepare(`update api_keys set ${change} where id = ?`).run(bound.id));
      moveGeneration(server.dataDir);
      const statuses = [
        await ask(bound.raw),
        await ask(bound.raw, pair),
        await ask(bound.raw, await pairOf('web-2')),
      ];
      assert.deepEqual(
        statuses.map(({ status }) => status),
        [401, 401, 401],
        change,
      );
    }
  });

  test('stays bound after a rotation, with both secrets', async (t) => {
    const { vault, bound, pairOf, ask } = await boundServer(t);
    const pair = await pairOf('web-1');
    const { raw } = await rotateApiKey(vault, localCli, bound.id, { overlap: day });
    for (const secret of [bound.raw, raw.expose()]) {
      assert.deepEqual([(await ask(secret)).status, (await ask(secret, pair)).status], [403, 200]);
    }
  });

  test('works without a certificate once the binding is removed, and needs another once it is changed', async (t) => {
    const { vault, bound, pairOf, ask } = await boundServer(t);
    await makeCertificate(vault, 'web-2', undefined, { usage: 'client' });
    const [first, second] = [await pairOf('web-1'), await pairOf('web-2')];
    const bind = (client_certificate: string | null) =>
      changeApiKey(vault, localCli, bound.id, parseInput(updateApiKeyInput, { client_certificate }));
    const statuses = async () => [
      (await ask(bound.raw)).status,
      (await ask(bound.raw, first)).status,
      (await ask(bound.raw, second)).status,
    ];
    assert.deepEqual(await statuses(), [403, 200, 403]);
    await bind('web-2');
    assert.deepEqual(await statuses(), [403, 403, 200]);
    await bind(null);
    assert.deepEqual(await statuses(), [200, 200, 200]);
  });

  test('stops working when its certificate is deleted by force, and works again once it is restored', async (t) => {
    const { vault, bound, pairOf, ask } = await boundServer(t);
    const pair = await pairOf('web-1');
    await assert.rejects(
      deleteCertificate(vault, localCli, 'web-1', { force: false }),
      /only with "web-1" as client/,
    );
    await deleteCertificate(vault, localCli, 'web-1', { force: true });
    assert.deepEqual([(await ask(bound.raw)).status, (await ask(bound.raw, pair)).status], [403, 403]);
    // Another certificate of the same name is not the one that the key is bound to.
    await makeCertificate(vault, 'web-1', undefined, { usage: 'client' });
    assert.equal(said(await ask(bound.raw, await pairOf('web-1'))), other);
    await deleteCertificate(vault, localCli, 'web-1', { force: true });
    await undeleteCertificate(vault, localCli, { id: 1 });
    assert.equal((await ask(bound.raw, pair)).status, 200);
  });

  test('is authorized by a second request without a query', async (t) => {
    const { vault, bound, pairOf, ask } = await boundServer(t);
    const pair = await pairOf('web-1');
    await ask(bound.raw, pair);
    const select = t.mock.method(vault.db.reader, 'selectFrom');
    const compiled = t.mock.method(vault.db.reader, 'executeQuery');
    assert.equal((await ask(bound.raw, pair)).status, 200);
    assert.deepEqual([select.mock.callCount(), compiled.mock.callCount()], [0, 0]);
  });

  test('does not work on a connection from before TLS requested certificates, and does on the next one', async (t) => {
    const server = await httpsServer(t);
    const { vault } = server;
    await makeCertificate(vault, 'web');
    await makeCertificate(vault, 'web-1', undefined, { usage: 'client' });
    const free = await makeKey(vault, { name: 'free' });
    const file = async (name: string) =>
      (
        await visit(`${server.url}/api/v1/certificates/web-1/${name}`, {
          headers: { Authorization: `Bearer ${free.raw}` },
        })
      ).body;
    const pair = { cert: await file('fullchain.crt'), key: await file('private.key') };
    const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false, ...pair });
    t.after(() => agent.destroy());
    const ask = async (raw: string) => {
      const asked = request(server.url + wanted, { agent, headers: { Authorization: `Bearer ${raw}` } });
      asked.end();
      const [response] = await once(asked, 'response');
      const isResumed = (response.socket as TLSSocket).isSessionReused();
      await text(response);
      return [response.statusCode, isResumed];
    };
    assert.deepEqual(await ask(free.raw), [200, false]);
    const { raw } = await makeKey(vault, { client_certificate: 'web-1' });
    await twoLooks(server);
    assert.deepEqual(await ask(raw), [403, false]);
    for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
    // The agent would resume the session, which has no certificate: the vault no longer accepts its ticket.
    assert.deepEqual(await ask(raw), [200, false]);
  });
});

suite('a TLS client', () => {
  test(
    'is asked for a certificate only while a key is bound, and only for one of the CAs of such keys',
    needs('openssl'),
    async (t) => {
      const server = await httpsServer(t);
      const { vault } = server;
      await addStagingCa(vault);
      await makeCertificate(vault, 'web-1', undefined, { usage: 'client', issuer: 'staging-ca' });
      const { host } = new URL(server.url);
      const shown = async () => {
        const connecting = promisify(execFile)('openssl', ['s_client', '-connect', host]);
        connecting.child.stdin?.end();
        const { stdout } = await connecting;
        return (
          /Acceptable client certificate CA names\n((?:.*CN ?=.*\n)+)/.exec(stdout)?.[1] ??
          stdout.match(/No client certificate CA names sent/)?.[0]
        );
      };
      assert.equal(await shown(), 'No client certificate CA names sent');
      const { id } = await makeKey(vault, { client_certificate: 'web-1' });
      await twoLooks(server);
      const authorities = await vault.db.reader
        .selectFrom('ca_certificates')
        .innerJoin('issuers', 'issuers.id', 'issuer_id')
        .select(['issuers.name', 'certificate'])
        .execute();
      const names = (issuer: string) =>
        authorities
          .filter(({ name }) => name === issuer)
          .map(({ certificate }) => new X509Certificate(certificate).subject.replace('CN=', ''));
      const announced = (await shown()) ?? '';
      for (const name of names('staging-ca')) assert(announced.includes(name), announced);
      for (const name of names('local-ca')) assert(!announced.includes(name), announced);
      await revokeApiKey(vault, localCli, id);
      await twoLooks(server);
      assert.equal(await shown(), 'No client certificate CA names sent');
    },
  );

  test('without a certificate, or with any, uses everything that needs none', async (t) => {
    const { server, free, pairOf, ask } = await boundServer(t);
    assert.equal((await visit(`${server.url}/api/v1/health`)).status, 200);
    const fake = await forged(await pairOf('web-1'));
    assert.equal((await visit(`${server.url}/api/v1/health`, fake)).status, 200);
    assert.equal((await ask(free.raw, fake)).status, 200);
    server.world.advance(minute);
    assert.equal((await ask(free.raw)).status, 200);
  });
});
