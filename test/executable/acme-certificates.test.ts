/** What clients get of a certificate from a CA, and what becomes of key and names at renewals; accounts; revocation. */
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { certificateStatus, certificatesIn, issuedBy, verify } from '../harness/acme/certificates.ts';
import { type AcmeVault, acmeVault, needsAcme } from '../harness/acme/vault.ts';
import { pebble } from '../harness/ca/pebble.ts';
import { needs } from '../harness/processes/missing-program.ts';

const web = ['--domain', 'www.example.test'];

function publicKeyOf(pem: string): string {
  return createPublicKey(pem).export({ format: 'pem', type: 'spki' }).toString();
}

function accountKeys({ query }: AcmeVault): string[] {
  const rows = query<{ key: Buffer }>('select sealed_private_key as key from acme_accounts order by id');
  return rows.map(({ key }) => key.toString('base64'));
}

suite('certificates', needsAcme(), () => {
  test(
    'each artifact contains the right certificates or key, and OpenSSL verifies the chain',
    needs('openssl'),
    async (t) => {
      const vault = await acmeVault(t);
      const server = await vault.serve();
      const client = await vault.client();
      for (const keyType of ['ec256', 'rsa2048', 'ec384']) {
        await vault.issue(keyType, ...web, '--key-type', keyType);
        const file = async (name: string) => (await client(server, keyType, name)).body;
        const leaf = await file('certificate.crt');
        const chain = await file('chain.crt');
        const fullchain = await file('fullchain.crt');
        assert.equal(certificatesIn(leaf).length, 1);
        assert.equal(fullchain, leaf + chain);
        const certificates = certificatesIn(fullchain).map((pem) => new X509Certificate(pem));
        assert.ok(certificates.length >= 2);
        certificates.slice(1).forEach((issuer, index) => {
          assert.ok(certificates[index]?.checkIssued(issuer) && certificates[index].verify(issuer.publicKey));
        });
        assert.ok(
          certificates.every(({ subject, issuer }) => subject !== issuer),
          'no root',
        );
        const key = createPrivateKey(await file('private.key'));
        assert.ok(certificates[0]?.checkPrivateKey(key));
        assert.equal(key.asymmetricKeyType, keyType.startsWith('rsa') ? 'rsa' : 'ec');
        assert.equal(verify(vault.dir, fullchain, await vault.ca.root()), 'leaf.pem: OK');
      }
    },
  );

  test('a renewal generates a new key unless --reuse-key is set; changed domains are ordered immediately', async (t) => {
    const vault = await acmeVault(t);
    const server = await vault.serve();
    const client = await vault.client();
    const key = async (name: string) => publicKeyOf((await client(server, name, 'private.key')).body);
    await vault.issue('fresh', ...web);
    await vault.issue('kept', ...web, '--reuse-key');
    const before = [await key('fresh'), await key('kept')];
    for (const name of ['fresh', 'kept']) {
      assert.match(await vault.done('certificate', 'renew', '--name', name, '--wait'), /: version 2,/);
    }
    const after = [await key('fresh'), await key('kept')];
    assert.notEqual(after[0], before[0]);
    assert.equal(after[1], before[1]);
    const domains = ['--domain', 'www.example.test', '--domain', 'more.example.test'];
    const update = ['certificate', 'update', '--name', 'kept', '--wait'];
    assert.match(await vault.done(...update, ...domains), /^kept: version 3,/);
    const leaf = new X509Certificate((await client(server, 'kept', 'certificate.crt')).body);
    assert.deepEqual(leaf.subjectAltName?.split(', ').sort(), [
      'DNS:more.example.test',
      'DNS:www.example.test',
    ]);
    assert.equal(await key('kept'), before[1]);
    assert.match(await vault.done(...update, '--key-type', 'rsa2048'), /^kept: version 4,/);
    const { body } = await client(server, 'kept', 'private.key');
    assert.equal(createPrivateKey(body).asymmetricKeyType, 'rsa');
    // Both versions before stay to be fetched.
    assert.equal(publicKeyOf((await client(server, 'kept', 'private.key?version=1')).body), before[1]);
  });

  test('revoke sends the reason to the CA, and the next version has a new key despite --reuse-key', async (t) => {
    const vault = await acmeVault(t);
    const server = await vault.serve();
    const client = await vault.client();
    await vault.issue('web', ...web, '--reuse-key');
    const first = await client(server, 'web', 'fullchain.crt');
    const firstKey = publicKeyOf((await client(server, 'web', 'private.key')).body);
    assert.deepEqual(await certificateStatus(vault.ca, first.body), { status: 'Valid', reason: undefined });
    await vault.done('certificate', 'revoke', '--name', 'web', '--reason', 'keyCompromise');
    assert.deepEqual(await certificateStatus(vault.ca, first.body), { status: 'Revoked', reason: 1 });
    assert.match(await vault.done('certificate', 'renew', '--name', 'web', '--wait'), /^web: version [23],/);
    assert.notEqual(publicKeyOf((await client(server, 'web', 'private.key')).body), firstKey);
    const audited = vault.query<{ detail: string }>(
      "select detail from audit_events where action = 'certificate.revoke'",
    );
    assert.deepEqual(
      audited.map(({ detail }) => JSON.parse(detail)),
      [{ version: 1, reason: 'keyCompromise' }],
    );
  });

  test('an ACME account can be rolled over, deactivated, replaced and deleted', async (t) => {
    const vault = await acmeVault(t, { authzReuse: 0 });
    const server = await vault.serve();
    await vault.issue('web', ...web);
    const [before] = accountKeys(vault);
    await vault.done('acme-account', 'rollover', '--id', '1');
    const [after] = accountKeys(vault);
    assert.notEqual(after, before);
    const renew = () => vault.done('certificate', 'renew', '--name', 'web', '--wait');
    assert.match(await renew(), /version 2,/, 'the running server learns of the new key');
    assert.match(await vault.refused('acme-account', 'delete', '--id', '1'), /issuer pebble uses it/);
    await vault.done('acme-account', 'deactivate', '--id', '1');
    assert.match(await renew(), /version 3,/, 'with another account');
    const list = JSON.parse(await vault.done('acme-account', 'list', '--json'));
    assert.deepEqual(
      list.map(({ id, status, current }: Record<string, unknown>) => [id, status, current]),
      [
        ['1', 'deactivated', false],
        ['2', 'valid', true],
      ],
    );
    await vault.done('acme-account', 'delete', '--id', '1', '--yes');
    assert.equal(JSON.parse(await vault.done('acme-account', 'list', '--json')).length, 1);
    // Whose account is gone is revoked by its own key.
    const client = await vault.client();
    const first = await client(server, 'web', 'fullchain.crt?version=1');
    await vault.done('certificate', 'revoke', '--name', 'web', '--version', '1', '--reason', 'superseded');
    assert.deepEqual(await certificateStatus(vault.ca, first.body), { status: 'Revoked', reason: 4 });
  });

  test('a new contact reaches the CA with the next renewal, and the account stays', async (t) => {
    const vault = await acmeVault(t);
    await vault.serve();
    await vault.issue('web', ...web);
    await vault.done('issuer', 'update', '--name', 'pebble', '--email', 'new@example.test');
    assert.match(await vault.done('certificate', 'renew', '--name', 'web', '--wait'), /version 2,/);
    const list = JSON.parse(await vault.done('acme-account', 'list', '--json'));
    assert.deepEqual(
      list.map(({ id, email }: Record<string, unknown>) => [id, email]),
      [['1', 'new@example.test']],
    );
  });

  test('an issuer with a new directory URL gets a new account; the old one stays but is not current', async (t) => {
    const vault = await acmeVault(t);
    const { server: dnsServer } = vault.dns;
    const other = await pebble(t, { dnsServer, httpPort: vault.httpPort, tlsPort: vault.tlsPort });
    await vault.serve();
    await vault.issue('web', ...web);
    const move = ['issuer', 'update', '--name', 'pebble', '--directory', other.directoryUrl];
    await vault.done(...move, '--ca-file', other.caFile, '--accept-terms');
    assert.match(await vault.done('certificate', 'renew', '--name', 'web', '--wait'), /version 2,/);
    const list = JSON.parse(await vault.done('acme-account', 'list', '--json'));
    assert.deepEqual(
      list.map(({ directory_url, current }: Record<string, unknown>) => [directory_url, current]),
      [
        [vault.ca.directoryUrl, false],
        [other.directoryUrl, true],
      ],
    );
    assert.deepEqual([issuedBy(vault.ca), issuedBy(other)], [1, 1]);
  });
});
