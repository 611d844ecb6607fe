/** API keys: what is refused and why, what is shown, and that every change has its audit event or did not happen. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { Problem, type ProblemCode } from '../../../src/base/problem.ts';
import { pageOfApiKeys } from '../../../src/domain/access/api-key-views.ts';
import { createApiKey, deleteApiKey, revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { type Actor, localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createApiKeyInput, createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { refuse } from '../../harness/database/outside-database.ts';
import { testVault } from '../../harness/test-vault.ts';

const actor: Actor = { name: 'admin:eve', ip: '192.0.2.1', requestId: 'r1' };

const create = (vault: Vault, others: object = {}) => {
  const usual = { name: 'deploy', scopes: ['certificates:read'], certificates: ['*'] };
  return createApiKey(vault, actor, parseInput(createApiKeyInput, { ...usual, ...others }));
};

async function vaultWith(t: Parameters<typeof testVault>[0], ...names: string[]) {
  const opened = await testVault(t);
  for (const name of names) {
    const input = parseInput(createCertificateInput, { name, domains: ['a.example'] });
    await createCertificate(opened.vault, localCli, input);
  }
  return opened;
}

const rejects = (work: Promise<unknown>, code: ProblemCode, message: RegExp) =>
  assert.rejects(work, (error) => {
    assert(error instanceof Problem, String(error));
    assert.equal(error.code, code);
    assert.match(error.body.detail, message);
    return true;
  });

async function events({ db }: Vault) {
  const query = db.reader.selectFrom('audit_events').selectAll().where('action', 'like', 'api_key.%');
  return (await query.orderBy('id').execute()).map(({ id: _, link: __, ...row }) => ({
    ...row,
    detail: JSON.parse(row.detail),
  }));
}

test('a key is stored as its SHA-256 hash, and neither the list nor the audit log contains the secret', async (t) => {
  const { vault } = await vaultWith(t, 'b', 'a');
  const { id, raw } = await create(vault, { certificates: ['b', 'a'], expires_at: '2027-01-01T00:00:00Z' });
  const [view] = await pageOfApiKeys(vault, { limit: 10 });
  assert.deepEqual(view, {
    id,
    name: 'deploy',
    prefix: raw.expose().slice(0, 15),
    scopes: ['certificates:read'],
    certificates: ['a', 'b'],
    allowed_networks: [],
    profiles: [],
    role: null,
    client_certificate: null,
    ...{ certificate_labels: [], reach: [], labels: [] },
    created_at: '2026-11-21T12:00:00Z',
    expires_at: '2027-01-01T00:00:00Z',
    revoked_at: null,
    last_used_at: null,
    last_used_ip: null,
    state: 'active',
    previous_prefix: null,
    previous_expires_at: null,
    enrollment: null,
  });
  const row = await vault.db.reader.selectFrom('api_keys').selectAll().executeTakeFirstOrThrow();
  assert.deepEqual(row.hash, createHash('sha256').update(raw.expose()).digest());
  const secret = raw.expose().slice(16);
  for (const shown of [view, row, await events(vault)]) assert(!JSON.stringify(shown).includes(secret));
});

test('the audit event of a new key says who created it, from where, and what it may do', async (t) => {
  const { vault, world } = await vaultWith(t);
  const { id, raw } = await create(vault);
  assert.deepEqual(await events(vault), [
    {
      at: world.now(),
      actor: 'admin:eve',
      action: 'api_key.create',
      resource: `api-key:${id}`,
      detail: {
        name: 'deploy',
        prefix: raw.expose().slice(0, 15),
        scopes: ['certificates:read'],
        certificates: ['*'],
        allowed_networks: [],
        profiles: [],
        expires_at: null,
      },
      ip: '192.0.2.1',
      request_id: 'r1',
    },
  ]);
});

for (const expires_at of ['2026-11-21T12:00:00Z', '2026-11-21T11:59:59Z', '1999-01-01T00:00:00Z']) {
  test(`a key that expires at ${expires_at}, not in the future, is rejected`, async (t) => {
    const { vault } = await vaultWith(t);
    await rejects(create(vault, { expires_at }), 'invalid_request', /^expires_at: .* is not in the future\./);
    assert.deepEqual([await pageOfApiKeys(vault, { limit: 10 }), await events(vault)], [[], []]);
  });
}

test('an unknown certificate is rejected with the closest name, and no key is created', async (t) => {
  const { vault } = await vaultWith(t, 'www.example.com', 'mail');
  await rejects(
    create(vault, { certificates: ['mail', 'ww.example.com'] }),
    'invalid_request',
    /^certificates: unknown certificate "ww\.example\.com"\. Did you mean "www\.example\.com"\?$/,
  );
  assert.deepEqual([await pageOfApiKeys(vault, { limit: 10 }), await events(vault)], [[], []]);
});

for (const action of ['create', 'revoke', 'delete'] as const) {
  test(`nothing changes when the audit event api_key.${action} cannot be written`, async (t) => {
    const { vault, dataDir } = await vaultWith(t, 'a');
    const { id } = await create(vault, { certificates: ['a'] });
    if (action === 'delete') await revokeApiKey(vault, actor, id);
    const before = await pageOfApiKeys(vault, { limit: 10 });
    refuse(dataDir, 'insert', 'audit_events', { message: 'no room' });
    const work = { create, revoke: revokeApiKey, delete: deleteApiKey } as const;
    const trying = action === 'create' ? create(vault, { name: 'other' }) : work[action](vault, actor, id);
    await assert.rejects(trying, /no room/);
    assert.deepEqual(await pageOfApiKeys(vault, { limit: 10 }), before);
  });
}

test('revoking a key again keeps its first revocation time and writes no second event', async (t) => {
  const { vault, world } = await vaultWith(t);
  const { id } = await create(vault);
  await revokeApiKey(vault, actor, id);
  world.advance(day);
  await revokeApiKey(vault, actor, id);
  const [view] = await pageOfApiKeys(vault, { limit: 10 });
  assert.equal(view?.revoked_at, '2026-11-21T12:00:00Z');
  assert.equal(view?.state, 'revoked');
  assert.deepEqual(
    (await events(vault)).map(({ action }) => action),
    ['api_key.create', 'api_key.revoke'],
  );
});

test('a key that is not revoked is not deleted, even when it has expired', async (t) => {
  const { vault, world } = await vaultWith(t);
  const { id } = await create(vault, { expires_at: '2026-11-22T00:00:00Z' });
  world.advance(day);
  const before = [await pageOfApiKeys(vault, { limit: 10 }), await events(vault)];
  const deleting = deleteApiKey(vault, actor, id);
  await rejects(deleting, 'api_key_active', /^API key 1 \(deploy\) is not revoked.*api-key revoke --id 1/);
  assert.deepEqual([await pageOfApiKeys(vault, { limit: 10 }), await events(vault)], before);
});

test('deleting a key removes its allowlist, and its id is not reused', async (t) => {
  const { vault } = await vaultWith(t, 'a');
  const { id } = await create(vault, { certificates: ['a'] });
  await revokeApiKey(vault, actor, id);
  await deleteApiKey(vault, actor, id);
  assert.deepEqual(await pageOfApiKeys(vault, { limit: 10 }), []);
  assert.deepEqual(await vault.db.reader.selectFrom('api_key_certificates').selectAll().execute(), []);
  assert.equal((await events(vault)).at(-1)?.action, 'api_key.delete');
  assert.equal((await create(vault)).id, id + 1);
});

test('a key that does not exist can be neither revoked nor deleted', async (t) => {
  const { vault } = await vaultWith(t);
  await rejects(revokeApiKey(vault, actor, 7), 'api_key_not_found', /Unknown API key 7/);
  await rejects(deleteApiKey(vault, actor, 7), 'api_key_not_found', /Unknown API key 7/);
  assert.deepEqual(await events(vault), []);
});
