/**
 * The vault's own certificate on HTTPS: from the first second, through renewals, and where there is trouble with it.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { createCertificate, deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import { TlsEndpoint } from '../../../src/http/tls/tls-endpoint.ts';
import { makeAccount, makeIssuer } from '../../harness/http/acme-fixtures.ts';
import {
  breakSealedKeys,
  eventsOf,
  importOne,
  makeCertificate,
  renewCertificate,
} from '../../harness/http/fixtures.ts';
import { type Visit, visit } from '../../harness/http/https-client.ts';
import { httpsServer, ownSource, twoLooks, untilSeen } from '../../harness/http/https-fixtures.ts';
import type { TestServer } from '../../harness/http/test-server.ts';
import { type TestVault, testVault } from '../../harness/test-vault.ts';

const health = '/api/v1/health';

/** The first answer with another certificate than this one. */
function nextAfter(server: TestServer, before: Visit): Promise<Visit> {
  return untilSeen(server, async () => {
    const now = await visit(server.url + health);
    return now.leaf.fingerprint256 === before.leaf.fingerprint256 ? undefined : now;
  });
}

function warnings({ log }: TestServer): string[] {
  return log.lines.filter((line) => /"level":"(warn|error)"/.test(line));
}

async function addAcmeIssuer(vault: TestVault['vault'], name: string): Promise<void> {
  await makeIssuer(vault, name, await makeAccount(vault));
}

suite('on an empty vault', () => {
  test('the private CA issues the certificate, which is recorded and can be pinned', async (t) => {
    const server = await httpsServer(t);
    const { leaf, pin, status } = await visit(server.url + health);
    assert.equal(status, 200);
    assert.equal(leaf.subjectAltName, 'DNS:vault.example.test');
    const [created] = eventsOf(server.dataDir, 'certificate.create');
    assert.deepEqual([created?.actor, created?.resource], ['system', 'certificate:vault']);
    assert(server.log.lines.some((line) => line.includes(pin) && line.includes('"level":"info"')));
  });

  test('the start fails with a hint about --public-url if no setting specifies a host name', async (t) => {
    const { vault } = await testVault(t);
    await assert.rejects(TlsEndpoint.open(vault, ownSource([])(vault)), (error) => {
      assert(error instanceof OperatorError);
      assert.match(error.message, /cannot create the HTTPS certificate "vault"/);
      assert.match(error.hint ?? '', /--public-url/);
      return true;
    });
    assert.deepEqual(await vault.db.reader.selectFrom('certificates').select('id').execute(), []);
  });

  test('two servers that start concurrently issue one certificate', async (t) => {
    const first = await testVault(t);
    const second = await testVault(t, { dataDir: first.dataDir, world: first.world });
    const [one, other] = await Promise.all(
      [first, second].map(({ vault }) => TlsEndpoint.open(vault, ownSource()(vault))),
    );
    assert(one && other);
    assert.equal(one.identity.leaf.fingerprint256, other.identity.leaf.fingerprint256);
  });
});

suite('a new version', () => {
  test('is served to the next connection, and has the same pin after every renewal', async (t) => {
    const server = await httpsServer(t);
    let before = await visit(server.url + health);
    for (let renewal = 0; renewal < 3; renewal++) {
      await renewCertificate(server.vault, 'vault');
      const after = await nextAfter(server, before);
      assert.equal(after.pin, before.pin);
      assert.notEqual(after.leaf.serialNumber, before.leaf.serialNumber);
      before = after;
    }
    assert.deepEqual(warnings(server), []);
  });

  test('issued by another process is served', async (t) => {
    const server = await httpsServer(t);
    const before = await visit(server.url + health);
    const other = await testVault(t, { dataDir: server.dataDir, world: server.world });
    await renewCertificate(other.vault, 'vault');
    assert.equal((await nextAfter(server, before)).pin, before.pin);
  });

  test('of an imported certificate is served, with its own key', async (t) => {
    const opened = await testVault(t);
    await importOne(opened.vault, 'vault', { chain: true });
    await opened.close();
    const server = await httpsServer(t, { dataDir: opened.dataDir, world: opened.world });
    const before = await visit(server.url + health);
    assert.equal(before.leaf.subjectAltName, 'DNS:imported.example.test');
    await importOne(server.vault, 'vault', { chain: true });
    assert.notEqual((await nextAfter(server, before)).pin, before.pin);
  });

  test('with changed domains is served after its renewal', async (t) => {
    const server = await httpsServer(t);
    const before = await visit(server.url + health);
    const domains = ['vault.example.test', 'vault.other.test'] as never[];
    await changeCertificate(server.vault, localCli, 'vault', { domains });
    await renewCertificate(server.vault, 'vault');
    const after = await nextAfter(server, before);
    assert.equal(after.leaf.subjectAltName, 'DNS:vault.example.test, DNS:vault.other.test');
    assert.equal(after.pin, before.pin);
  });

  test('is not reloaded when other certificates change', async (t) => {
    const server = await httpsServer(t);
    const lines = () => server.log.lines.filter((line) => line.includes('"certificate":"vault"')).length;
    const before = lines();
    await makeCertificate(server.vault, 'web');
    await twoLooks(server);
    assert.equal(lines(), before);
  });
});

suite('the HTTPS certificate', () => {
  test('is replaced by a temporary one from the private CA until its public CA issues it', async (t) => {
    const opened = await testVault(t);
    await addAcmeIssuer(opened.vault, 'public');
    const input = { name: 'vault', domains: ['vault.public.test'], issuer: 'public' };
    await createCertificate(opened.vault, localCli, parseInput(createCertificateInput, input));
    await opened.close();
    const server = await httpsServer(t, { dataDir: opened.dataDir, world: opened.world });
    const standIn = await visit(server.url + health);
    assert.equal(standIn.leaf.subjectAltName, 'DNS:vault.example.test, DNS:vault.public.test');
    assert.match(
      warnings(server).join('\n'),
      /certificate not issued yet; serving a temporary one from the private CA/,
    );
    const row = () =>
      server.vault.db.reader.selectFrom('certificates').select('current_version').executeTakeFirst();
    assert.equal((await row())?.current_version, null, 'the stand-in is no version');
    // The wait may be long: the temporary certificate is replaced before it expires.
    server.world.advance(89.5 * 86_400_000);
    const later = await nextAfter(server, standIn);
    assert.equal(later.leaf.subjectAltName, standIn.leaf.subjectAltName);
    // What the CA issues is put in its place; here the private CA plays it.
    await changeCertificate(server.vault, localCli, 'vault', { issuer: 'local-ca' });
    await renewCertificate(server.vault, 'vault');
    assert.equal((await nextAfter(server, later)).leaf.subjectAltName, 'DNS:vault.public.test');
  });

  test('is served with a warning if it expired while the vault was stopped, until its renewal', async (t) => {
    const first = await testVault(t);
    await TlsEndpoint.open(first.vault, ownSource()(first.vault));
    await first.close();
    first.world.advance(100 * 86_400_000);
    const server = await httpsServer(t, { dataDir: first.dataDir, world: first.world });
    const expired = await visit(server.url + health);
    assert.equal(expired.status, 200);
    assert.match(warnings(server).join('\n'), /the HTTPS certificate has expired/);
    await renewCertificate(server.vault, 'vault');
    const renewed = await nextAfter(server, expired);
    assert(renewed.leaf.validToDate.getTime() > server.world.now());
    assert.equal(renewed.pin, expired.pin);
  });

  test('is replaced by a temporary one from the private CA if its key cannot be decrypted, until its renewal', async (t) => {
    const first = await testVault(t);
    await makeCertificate(first.vault, 'vault');
    await first.close();
    breakSealedKeys(first.dataDir);
    const server = await httpsServer(t, { dataDir: first.dataDir, world: first.world });
    const standIn = await visit(server.url + health);
    assert.equal(standIn.status, 200);
    assert.match(
      warnings(server).join('\n'),
      /"level":"error".*certificate unavailable; serving a temporary one/,
    );
    await renewCertificate(server.vault, 'vault');
    assert.equal((await nextAfter(server, standIn)).leaf.subjectAltName, 'DNS:vault.example.test');
  });

  test('stays served after its deletion until a new certificate has its name', async (t) => {
    const server = await httpsServer(t);
    const before = await visit(server.url + health);
    await deleteCertificate(server.vault, localCli, 'vault', { force: true });
    await twoLooks(server);
    assert.equal((await visit(server.url + health)).leaf.fingerprint256, before.leaf.fingerprint256);
    await makeCertificate(server.vault, 'vault', ['new.example.test']);
    assert.equal((await nextAfter(server, before)).leaf.subjectAltName, 'DNS:new.example.test');
  });

  test('stays served if its next version cannot be decrypted, which is logged once', async (t) => {
    const server = await httpsServer(t);
    const before = await visit(server.url + health);
    await renewCertificate(server.vault, 'vault');
    breakSealedKeys(server.dataDir);
    await twoLooks(server);
    await twoLooks(server);
    assert.equal((await visit(server.url + health)).leaf.fingerprint256, before.leaf.fingerprint256);
    assert.equal(warnings(server).length, 1);
    assert.match(warnings(server)[0] ?? '', /keeping the current one/);
  });
});
