/** The generation changes with everything that caches of rights and certificates contain, and with nothing else. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { toJson } from '../../src/base/json.ts';
import { insertAuditEvents } from '../../src/db/audit/audit-insertion.ts';
import type { Writer } from '../../src/db/database.ts';
import { storedValue } from '../../src/db/engine-sql.ts';
import { insertAllowlist, removeFromAllowlists } from '../../src/db/tables/access/api-key-certificates.ts';
import { setLastUsed } from '../../src/db/tables/access/api-key-uses.ts';
import { deleteApiKeyRow, insertApiKey, setRevoked } from '../../src/db/tables/access/api-keys.ts';
import { insertVersion } from '../../src/db/tables/certificates/certificate-versions.ts';
import {
  deleteCertificateRow,
  insertCertificate,
  updateCertificate,
} from '../../src/db/tables/certificates/certificates.ts';
import { insertCaCertificate, setCaPrivateKey } from '../../src/db/tables/issuance/ca-certificates.ts';
import { insertIssuer } from '../../src/db/tables/issuance/issuers.ts';
import { insertRenewal, updateRenewal } from '../../src/db/tables/renewals/renewals.ts';
import { localCli, record } from '../../src/domain/audit/audit.ts';
import { bound } from '../harness/database/bound-database.ts';
import { makeDatabase } from '../harness/database/database-maker.ts';
import { outside } from '../harness/database/outside-database.ts';

const key = (prefix: string) => ({
  name: 'key',
  prefix,
  hash: Buffer.alloc(32),
  scopes: toJson([]),
  any_certificate: 0 as const,
  allowed_networks: toJson([]),
  created_at: 1,
  expires_at: null,
});

const certificate = (name: string) => ({
  name,
  domains: toJson([]),
  key_type: 'ec256',
  auto_renew: 0 as const,
  reuse_key: 0 as const,
  created_at: 1,
});

const version = (number: number) => ({
  certificate_id: 1,
  version: number,
  serial: '01',
  issuer: '',
  subject: '',
  domains: toJson([]),
  key_type: 'ec256',
  fingerprint_sha256: '',
  not_before: 1,
  not_after: 2,
  created_at: 1,
  source: 'import' as const,
  certificate_pem: '',
  chain_pem: '',
  sealed_private_key: Buffer.alloc(0),
  certificate_etag: '',
  chain_etag: '',
  fullchain_etag: '',
  private_key_etag: '',
});

const authority = {
  issuer_id: 1,
  role: 'root' as const,
  certificate: Buffer.alloc(0),
  sealed_private_key: Buffer.alloc(0),
  not_before: 1,
  not_after: 2,
  created_at: 1,
};

/** A database with one row of everything, each with the id 1. */
async function filled(t: TestContext) {
  const { db, dataDir } = await makeDatabase(t);
  await bound(db);
  await db.write(async (writer) => {
    await insertIssuer(writer, { name: 'ca', type: 'local-ca', created_at: 1 });
    await insertCaCertificate(writer, authority);
    await insertCertificate(writer, certificate('a'));
    await insertVersion(writer, version(1));
    await insertApiKey(writer, key('vk_a'));
    await insertAllowlist(writer, 1, [1]);
    await insertRenewal(writer, { certificate_id: 1, requested_by: 'system', requested_at: 1, issuer_id: 1 });
  });
  return { db, dataDir };
}

const moving: Record<string, (writer: Writer) => Promise<unknown>> = {
  'a new certificate': (writer) => insertCertificate(writer, certificate('b')),
  'a changed certificate': (writer) => updateCertificate(writer, 1, { current_version: 1 }),
  'a new version': (writer) => insertVersion(writer, version(2)),
  'a new CA certificate': (writer) => insertCaCertificate(writer, authority),
  'a CA private key': (writer) => setCaPrivateKey(writer, 1, Buffer.alloc(1)),
  'a new key': (writer) => insertApiKey(writer, key('vk_b')),
  'a revoked key': (writer) => setRevoked(writer, 1, 5),
  "a key's expiry": (writer) => writer.updateTable('api_keys').set({ expires_at: 5 }).execute(),
  "a key's scopes": (writer) =>
    writer
      .updateTable('api_keys')
      .set({ scopes: toJson(['certificates:read'] as const) })
      .execute(),
  'a deleted key': async (writer) => {
    await deleteApiKeyRow(writer, 1);
    record(writer, { actor: localCli, action: 'api_key.delete', resource: 'api-key:1' }, 1);
  },
  'an emptied allowlist': (writer) => removeFromAllowlists(writer, 1),
  'a deleted certificate': async (writer) => {
    await removeFromAllowlists(writer, 1);
    await deleteCertificateRow(writer, 1);
  },
};

for (const [what, change] of Object.entries(moving)) {
  test(`${what} increases the generation`, async (t) => {
    const { db } = await filled(t);
    const before = await db.generation();
    await db.write(change);
    const after = await db.generation();
    assert(after > before);
    assert.equal(await db.generation(), after);
  });
}

const still: Record<string, (writer: Writer) => Promise<unknown>> = {
  'the use of a key': (writer) => setLastUsed(writer, [{ id: 1, at: 5, ip: '192.0.2.1' }]),
  'the progress of a renewal': (writer) => updateRenewal(writer, 1, { status: 'running', claims: 1 }),
  'an audit event': (writer) => {
    const event = { at: 1, actor: 'system', action: 'x', resource: 'x', detail: '{}', ip: null };
    return insertAuditEvents(writer, [{ ...event, request_id: null }]);
  },
  'a setting': (writer) =>
    writer
      .insertInto('settings')
      .values({ key: 'x', value: storedValue(1) })
      .execute(),
};

for (const [what, change] of Object.entries(still)) {
  test(`${what} leaves the generation unchanged`, async (t) => {
    const { db } = await filled(t);
    const before = await db.generation();
    await db.write(change);
    assert.equal(await db.generation(), before);
  });
}

test('a change that is rolled back leaves the generation unchanged', async (t) => {
  const { db } = await filled(t);
  const before = await db.generation();
  const undone = db.write(async (writer) => {
    await setRevoked(writer, 1, 5);
    throw new Error('no');
  });
  await assert.rejects(undone);
  assert.equal(await db.generation(), before);
});

test('a change by another process increases the generation', async (t) => {
  const { db, dataDir } = await filled(t);
  const before = await db.generation();
  outside(dataDir, (other) => other.exec('update api_keys set revoked_at = 5'));
  assert((await db.generation()) > before);
});

test('deleting a certificate row alone increments the generation by one', async (t) => {
  const { db } = await filled(t);
  await db.write((writer) => removeFromAllowlists(writer, 1));
  const before = await db.generation();
  await db.write((writer) => deleteCertificateRow(writer, 1));
  assert.equal(await db.generation(), before + 1);
});
