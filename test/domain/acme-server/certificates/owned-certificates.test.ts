/** Certificates of ACME clients: one for each client, issuer and set of names, with what was issued as its versions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Identifier } from '../../../../src/base/identifier.ts';
import { toJson } from '../../../../src/base/json.ts';
import { encodePem } from '../../../../src/crypto/pem.ts';
import { findVersion } from '../../../../src/db/tables/certificates/certificate-versions.ts';
import {
  findCertificateById,
  insertCertificate,
} from '../../../../src/db/tables/certificates/certificates.ts';
import { findIssuer } from '../../../../src/db/tables/issuance/issuers.ts';
import {
  findOwned,
  type OwnedOrder,
  ownedCertificate,
  storeIssued,
} from '../../../../src/domain/acme-server/certificates/owned-certificates.ts';
import { localCaName } from '../../../../src/domain/private-ca/local-ca.ts';
import type { Vault } from '../../../../src/domain/vault.ts';
import { insertAcmeClient } from '../../../harness/acme/client-rows.ts';
import { identifier, makeChain } from '../../../harness/ca/private-chain.ts';
import { refuse } from '../../../harness/database/outside-database.ts';
import { testVault } from '../../../harness/test-vault.ts';

const { intermediate, leaf } = await makeChain();
const csr = Buffer.from('a request, which nothing here reads');

const names = (...texts: string[]): Identifier[] => texts.map(identifier);

async function orderer(vault: Vault, name = 'web') {
  const client = { id: await insertAcmeClient(vault, name), name };
  const issuer = await findIssuer(vault.db.reader, localCaName);
  assert(issuer);
  const actor = { name: `acme-client:${client.id}:${name}`, ip: '192.0.2.7', requestId: 'r1' };
  const issue = async (identifiers: Identifier[], changes: Partial<OwnedOrder> = {}) => {
    const material = {
      source: 'local-ca' as const,
      leaf: leaf.certificate,
      chain: [intermediate.certificate],
      privateKey: undefined,
    };
    const order = { client, issuer, identifiers, csr, profile: undefined, actor, ...changes };
    return vault.db.write((writer) => storeIssued(vault, writer, { ...order, material }));
  };
  return { client, issuer, issue };
}

async function certificateNamed(vault: Vault, id: number) {
  const row = await findCertificateById(vault.db.reader, id);
  assert(row);
  return row;
}

test('a certificate issued to an ACME client belongs to it and has no private key or scheduled renewal', async (t) => {
  const { vault } = await testVault(t);
  const { client, issuer, issue } = await orderer(vault);
  const issued = await issue(names('www.example.com', 'example.com'));
  assert.deepEqual(
    { ...issued, certificateId: 0 },
    { certificateId: 0, version: 1, name: 'www.example.com' },
  );
  const row = await certificateNamed(vault, issued.certificateId);
  assert.deepEqual(JSON.parse(row.domains), ['www.example.com', 'example.com']);
  assert.equal(row.acme_client_id, client.id);
  assert.equal(row.issuer_id, issuer.id);
  assert.equal(row.key_type, 'ec256');
  assert.equal(row.csr, encodePem('CERTIFICATE REQUEST', csr));
  assert.deepEqual([row.auto_renew, row.next_renewal_at], [0, null]);
  const version = await findVersion(vault.db.reader, row.id, 1);
  assert.deepEqual([version?.sealed_private_key.length, version?.private_key_etag], [0, '']);
  const events = await vault.db.reader
    .selectFrom('audit_events')
    .select(['actor', 'ip', 'request_id', 'resource', 'detail'])
    .where('action', '=', 'certificate.issue')
    .execute();
  assert.deepEqual(
    events.map((event) => ({ ...event, detail: JSON.parse(event.detail) })),
    [
      {
        actor: `acme-client:${client.id}:web`,
        ip: '192.0.2.7',
        request_id: 'r1',
        resource: 'certificate:www.example.com',
        detail: {
          version: 1,
          domains: ['www.example.com', 'example.com'],
          key_type: 'ec256',
          issuer: 'local-ca',
        },
      },
    ],
  );
});

test('no certificate is stored when its audit event cannot be written', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const { issue } = await orderer(vault);
  const full = refuse(dataDir, 'insert', 'audit_events', {
    when: "new.action = 'certificate.issue'",
    message: 'no room',
  });
  await assert.rejects(issue(names('www.example.com')), /no room/);
  await full.allow();
  const rows = await vault.db.reader.selectFrom('certificates').select('name').execute();
  assert.deepEqual(rows, []);
});

test('the same domains in a different order create a new version with the latest CSR and profile', async (t) => {
  const { vault } = await testVault(t);
  const { client, issuer, issue } = await orderer(vault);
  const first = await issue(names('a.example.com', 'b.example.com'));
  const second = await issue(names('b.example.com', 'a.example.com'), {
    csr: Buffer.from('another one'),
    profile: 'short',
  });
  assert.deepEqual(second, { ...first, version: 2 });
  const row = await certificateNamed(vault, first.certificateId);
  assert.equal(row.current_version, 2);
  assert.equal(row.profile, 'short');
  assert.equal(row.csr, encodePem('CERTIFICATE REQUEST', Buffer.from('another one')));
  const found = await findOwned(vault.db.reader, client, issuer, names('b.example.com', 'a.example.com'));
  assert.equal(found?.id, first.certificateId);
  assert.equal(await findOwned(vault.db.reader, client, issuer, names('a.example.com')), undefined);
  const third = await issue(names('a.example.com'));
  assert.notEqual(third.certificateId, first.certificateId);
});

test('two orders of the same names at the same time end as two versions of one certificate', async (t) => {
  const { vault } = await testVault(t);
  const { issue } = await orderer(vault);
  const both = await Promise.all([
    issue(names('a.example.com', 'b.example.com')),
    issue(names('b.example.com', 'a.example.com')),
  ]);
  assert.deepEqual(both.map(({ version }) => version).toSorted(), [1, 2]);
  assert.equal(new Set(both.map(({ certificateId }) => certificateId)).size, 1);
});

test('a taken certificate name gets the client name as a suffix, then a number, then a digest', async (t) => {
  const { vault } = await testVault(t);
  const { issue } = await orderer(vault, 'web farm');
  const sets = Array.from({ length: 13 }, (_, index) => names('www.example.com', `n${index}.example.com`));
  const given: string[] = [];
  for (const set of sets) given.push((await issue(set)).name);
  const numbered = [2, 3, 4, 5, 6, 7, 8, 9].map((number) => `www.example.com-web-farm-${number}`);
  assert.deepEqual(given.slice(0, 10), ['www.example.com', 'www.example.com-web-farm', ...numbered]);
  assert.equal(new Set(given).size, 13);
  for (const name of given.slice(10)) assert.match(name, /^www\.example\.com-web-farm-[A-Za-z0-9_-]{22}$/);
});

test('wildcards, IP addresses and long domains become valid certificate names', async (t) => {
  const { vault } = await testVault(t);
  const { issue } = await orderer(vault);
  const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`;
  const given: string[] = [];
  for (const name of ['*.example.com', '192.0.2.1', '2001:db8::1', '::1', long])
    given.push((await issue(names(name))).name);
  assert.deepEqual(given, [
    'wildcard.example.com',
    '192.0.2.1',
    '2001-db8--1',
    'ip--1',
    `${'a'.repeat(60)}-web`,
  ]);
});

test('an order does not change a certificate of an administrator or another client with the same name', async (t) => {
  const { vault } = await testVault(t);
  const { issue } = await orderer(vault);
  const id = await vault.db.write((writer) =>
    insertCertificate(writer, {
      ...{ name: 'www.example.com', domains: toJson(names('www.example.com')), key_type: 'ec256' },
      ...{ auto_renew: 1, reuse_key: 0, created_at: 1 },
    }),
  );
  const other = await orderer(vault, 'other');
  const given = [await issue(names('www.example.com')), await other.issue(names('www.example.com'))];
  assert.deepEqual(
    given.map(({ name, version }) => [name, version]),
    [
      ['www.example.com-web', 1],
      ['www.example.com-other', 1],
    ],
  );
  assert.equal((await certificateNamed(vault, id)).current_version, null);
});

test('ownedCertificate returns only existing versions that the client owns', async (t) => {
  const { vault } = await testVault(t);
  const { client, issue } = await orderer(vault);
  const other = await orderer(vault, 'other');
  const { certificateId } = await issue(names('www.example.com'));
  const { reader } = vault.db;
  const found = await ownedCertificate(reader, client, certificateId, 1);
  assert.equal(found?.certificate.id, certificateId);
  assert.equal(found?.version.version, 1);
  assert.equal(await ownedCertificate(reader, client, certificateId, 2), undefined);
  assert.equal(await ownedCertificate(reader, other.client, certificateId, 1), undefined);
  assert.equal(await ownedCertificate(reader, client, certificateId + 1, 1), undefined);
});

test('certificates of a deleted client stay without an owner, even when a client with its name orders again', async (t) => {
  const { vault } = await testVault(t);
  const { client, issue } = await orderer(vault);
  const { certificateId } = await issue(names('www.example.com'));
  await vault.db.write((writer) => writer.deleteFrom('acme_clients').where('id', '=', client.id).execute());
  const row = await certificateNamed(vault, certificateId);
  assert.deepEqual([row.acme_client_id, row.current_version], [null, 1]);
  const again = await orderer(vault, 'web');
  const { name } = await again.issue(names('www.example.com'));
  assert.equal(name, 'www.example.com-web');
});
