/** Certificates: made and removed whole, with their audit events, or not at all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { Problem, type ProblemCode } from '../../../src/base/problem.ts';
import { pageOfApiKeys } from '../../../src/domain/access/api-key-views.ts';
import { createApiKey, revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate, deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createApiKeyInput, createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireCertificate } from '../../../src/domain/versions/certificate-lookup.ts';
import { refuse } from '../../harness/database/outside-database.ts';
import { silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const create = (vault: Vault, name: string, others: object = {}) =>
  createCertificate(
    vault,
    localCli,
    parseInput(createCertificateInput, { name, domains: ['www.example.com'], ...others }),
  );

let keys = 0;

function createKey(vault: Vault, ...certificates: string[]) {
  keys += 1;
  const input = { name: `deploy-${keys}`, scopes: ['certificates:read'], certificates };
  return createApiKey(vault, localCli, parseInput(createApiKeyInput, input));
}

const rejects = (work: Promise<unknown>, code: ProblemCode, message: RegExp) =>
  assert.rejects(work, (error) => {
    assert(error instanceof Problem, String(error));
    assert.equal(error.code, code);
    assert.match(error.body.detail, message);
    return true;
  });

async function rows(vault: Vault) {
  const { reader } = vault.db;
  return {
    certificates: await reader.selectFrom('certificates').selectAll().execute(),
    versions: await reader.selectFrom('certificate_versions').selectAll().execute(),
    events: await reader
      .selectFrom('audit_events')
      .select(['actor', 'action', 'resource', 'detail'])
      .where('action', '!=', 'issuer.create')
      .orderBy('id')
      .execute(),
  };
}

test('a new certificate has version 1, a scheduled renewal and two audit events', async (t) => {
  const { vault, world } = await testVault(t);
  await create(vault, 'www', { key_type: 'ed25519', lifetime: '90d' });
  const { certificates, versions, events } = await rows(vault);
  const [certificate, version] = [certificates[0], versions[0]];
  assert(certificate && version);
  assert.equal(certificate.current_version, 1);
  assert.equal(certificate.lifetime, 90 * day);
  assert.equal(certificate.created_at, world.now());
  assert((certificate.next_renewal_at ?? 0) > world.now() + 50 * day);
  assert.equal(version.source, 'local-ca');
  assert.equal(version.key_type, 'ed25519');
  assert.deepEqual(JSON.parse(version.domains), ['www.example.com']);
  assert.deepEqual(
    events.map(({ actor, action, resource }) => [actor, action, resource]),
    [
      ['local-cli', 'certificate.create', 'certificate:www'],
      ['local-cli', 'certificate.issue', 'certificate:www'],
    ],
  );
});

for (const action of ['certificate.create', 'certificate.issue']) {
  test(`no certificate is created when the audit event ${action} cannot be written`, async (t) => {
    const { vault, dataDir } = await testVault(t);
    const when = `new.action = '${action}'`;
    const full = refuse(dataDir, 'insert', 'audit_events', { when, message: 'no room' });
    await assert.rejects(create(vault, 'www'), /no room/);
    assert.deepEqual(await rows(vault), { certificates: [], versions: [], events: [] });
    full.allow();
    await create(vault, 'www');
  });
}

test('a taken name is rejected, and its certificate stays unchanged', async (t) => {
  const { vault } = await testVault(t);
  await create(vault, 'www');
  const before = await rows(vault);
  await rejects(
    create(vault, 'www'),
    'certificate_exists',
    /Certificate "www" already exists.*update --name www/,
  );
  assert.deepEqual(await rows(vault), before);
});

test('only one of two concurrent creates with the same name succeeds', async (t) => {
  const { vault } = await testVault(t);
  const outcomes = await Promise.allSettled([create(vault, 'www'), create(vault, 'www')]);
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  assert.equal((await rows(vault)).versions.length, 1);
});

test('an unknown issuer is rejected with the list of issuers', async (t) => {
  const { vault } = await testVault(t);
  await rejects(
    create(vault, 'www', { issuer: 'acme' }),
    'invalid_request',
    /Unknown issuer "acme"\. Use one of: local-ca/,
  );
});

test('a key type or profile that the issuer or fallback does not support is rejected, and nothing is created', async (t) => {
  const { vault } = await testVault(t);
  await silentIssuer(vault, 'ca');
  const ed25519 = { key_type: 'ed25519' };
  await rejects(
    create(vault, 'www', { ...ed25519, issuer: 'ca' }),
    'invalid_request',
    /do not issue certificates for Ed25519/,
  );
  await rejects(
    create(vault, 'www', { ...ed25519, fallback_issuer: 'ca' }),
    'invalid_request',
    /do not issue certificates for Ed25519/,
  );
  await rejects(create(vault, 'www', { fallback_issuer: 'cb' }), 'invalid_request', /Unknown issuer "cb"/);
  await rejects(create(vault, 'www', { profile: 'short' }), 'invalid_request', /no profile "short"/);
  assert.deepEqual((await rows(vault)).certificates, []);
});

test('creating a certificate at an ACME CA queues the first renewal and wakes the worker', async (t) => {
  const { vault, world } = await testVault(t);
  const issuer_id = await silentIssuer(vault, 'ca');
  const ring = t.mock.method(vault.renewalQueued, 'notify');
  const id = await create(vault, 'www', { issuer: 'ca', profile: 'short', challenge: 'http-01' });
  assert.equal(ring.mock.callCount(), 1);
  const renewal = await vault.db.reader.selectFrom('renewals').selectAll().executeTakeFirstOrThrow();
  assert.deepEqual([renewal.id, renewal.status, renewal.issuer_id], [id, 'queued', issuer_id]);
  const { certificates, versions, events } = await rows(vault);
  assert.deepEqual([certificates[0]?.current_version, versions.length], [null, 0]);
  assert.deepEqual([certificates[0]?.profile, certificates[0]?.challenge], ['short', 'http-01']);
  assert.equal(certificates[0]?.next_renewal_at, world.now());
  assert.deepEqual(
    events.map(({ action }) => action),
    ['certificate.create', 'renewal.request'],
  );
});

test('requireCertificate suggests the closest name for an unknown certificate only with suggest', async (t) => {
  const { vault } = await testVault(t);
  await create(vault, 'www.example.com');
  const { reader } = vault.db;
  const find = (suggest: boolean) => requireCertificate(reader, 'ww.example.com', { suggest });
  await rejects(
    find(true),
    'certificate_not_found',
    /Unknown certificate "ww.example.com"\. Did you mean "www.example.com"\?$/,
  );
  await rejects(find(false), 'certificate_not_found', /Unknown certificate "ww.example.com"\.$/);
  await rejects(requireCertificate(reader, '../x'), 'certificate_not_found', /Unknown certificate "\.\.\/x"/);
});

test('deleting a certificate removes its renewals and frees its name, and its id is not reused', async (t) => {
  const { vault } = await testVault(t);
  await create(vault, 'www');
  await deleteCertificate(vault, localCli, 'www', { force: false });
  const { certificates, events } = await rows(vault);
  assert.deepEqual(certificates, []);
  assert.deepEqual(await vault.db.reader.selectFrom('renewals').select('id').execute(), []);
  assert.deepEqual(events.at(-1), {
    actor: 'local-cli',
    action: 'certificate.delete',
    resource: 'certificate:www',
    detail: '{"versions":1,"removed_from_api_keys":[]}',
  });
  await create(vault, 'www');
  // A sealed key must never open in another row, so the id is never given out again.
  assert.equal((await rows(vault)).certificates[0]?.id, 2);
});

test('a certificate in the allowlist of active keys is not deleted, and the error lists the keys', async (t) => {
  const { vault } = await testVault(t);
  await create(vault, 'www');
  for (let n = 0; n < 6; n += 1) await createKey(vault, 'www');
  const before = await rows(vault);
  const deleting = deleteCertificate(vault, localCli, 'www', { force: false });
  await rejects(
    deleting,
    'certificate_in_use',
    /1 \(deploy-\d+\), .*5 \(deploy-\d+\) …\. Revoke these keys first/,
  );
  assert.deepEqual(await rows(vault), before);
});

test('a forced deletion removes the certificate from allowlists, and the keys keep their other entries', async (t) => {
  const { vault } = await testVault(t);
  await create(vault, 'a');
  await create(vault, 'b');
  await createKey(vault, 'a', 'b');
  await createKey(vault, 'a');
  await deleteCertificate(vault, localCli, 'a', { force: true });
  assert.deepEqual(
    (await pageOfApiKeys(vault, { limit: 10 })).map(({ certificates }) => certificates),
    [['b'], []],
  );
  assert.equal((await rows(vault)).events.at(-1)?.detail, '{"versions":1,"removed_from_api_keys":[1,2]}');
});

test('revoked keys and keys for any certificate do not block the deletion of a certificate', async (t) => {
  const { vault } = await testVault(t);
  await create(vault, 'www');
  const { id } = await createKey(vault, 'www');
  await createKey(vault, '*');
  await revokeApiKey(vault, localCli, id);
  await deleteCertificate(vault, localCli, 'www', { force: false });
  assert.deepEqual((await rows(vault)).certificates, []);
});

test('deleting an unknown certificate is rejected with the closest name', async (t) => {
  const { vault } = await testVault(t);
  await create(vault, 'www');
  await rejects(
    deleteCertificate(vault, localCli, 'ww', { force: true }),
    'certificate_not_found',
    /Did you mean "www"/,
  );
});
