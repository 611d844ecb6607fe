/** Changing what a key may do: at once, in one step with its audit event, and never the key itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import { storeApiKeyChange } from '../../../src/domain/access/api-key-change.ts';
import { viewApiKey } from '../../../src/domain/access/api-key-views.ts';
import { createApiKey } from '../../../src/domain/access/api-keys.ts';
import { type Actor, localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createApiKeyInput, createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { testVault } from '../../harness/test-vault.ts';

const actor: Actor = { name: 'admin:eve' };

const input = (others: object = {}) =>
  parseInput(createApiKeyInput, {
    ...{ name: 'deploy', scopes: ['certificates:read'], certificates: ['*'] },
    ...others,
  });

const change = (vault: Vault, id: number, others: object) =>
  vault.db.write((writer) => storeApiKeyChange(vault, writer, actor, id, input(others)));

async function prepared(t: Parameters<typeof testVault>[0]) {
  const opened = await testVault(t);
  for (const name of ['a', 'b']) {
    const wanted = parseInput(createCertificateInput, { name, domains: ['a.example'] });
    await createCertificate(opened.vault, localCli, wanted);
  }
  const { id, raw } = await createApiKey(opened.vault, localCli, input({ certificates: ['a'] }));
  return { ...opened, id, raw };
}

test('the rights of a key are replaced, its prefix stays, and the change is recorded', async (t) => {
  const { vault, id, raw } = await prepared(t);
  const rights = {
    scopes: ['private_keys:read', 'certificates:read'],
    certificates: ['b'],
    allowed_networks: ['192.0.2.0/24'],
    expires_at: '2027-01-01T00:00:00Z',
  };
  await change(vault, id, rights);
  const view = await viewApiKey(vault, id);
  assert.deepEqual(
    [view.scopes, view.certificates, view.allowed_networks, view.expires_at],
    [['certificates:read', 'private_keys:read'], ['b'], ['192.0.2.0/24'], '2027-01-01T00:00:00Z'],
  );
  assert.ok(raw.expose().startsWith(`${view.prefix}.`));
  const query = vault.db.reader.selectFrom('audit_events').selectAll().where('action', '=', 'api_key.update');
  const event = await query.executeTakeFirstOrThrow();
  assert.deepEqual([event.actor, event.resource], ['admin:eve', `api-key:${id}`]);
  assert.deepEqual(JSON.parse(event.detail).certificates, ['b']);
});

test('every change of rights advances the database generation for caches, also of the networks alone', async (t) => {
  const { vault, id } = await prepared(t);
  for (const others of [{ allowed_networks: ['192.0.2.1'] }, { scopes: ['renewals:trigger'] }, {}]) {
    const before = await vault.db.generation();
    await change(vault, id, others);
    assert.notEqual(await vault.db.generation(), before, JSON.stringify(others));
  }
});

test('an unknown key, an unknown certificate and a new past expiry are rejected; an expired key keeps its expiry', async (t) => {
  const { vault, world, id } = await prepared(t);
  const before = await viewApiKey(vault, id);
  const refused = async (work: Promise<unknown>, code: string) =>
    assert.rejects(work, (error) => error instanceof Problem && error.code === code);
  await refused(change(vault, 99, {}), 'api_key_not_found');
  await refused(change(vault, id, { certificates: ['nothing'] }), 'invalid_request');
  await refused(change(vault, id, { expires_at: '2020-01-01T00:00:00Z' }), 'invalid_request');
  assert.deepEqual(await viewApiKey(vault, id), before);
  const soon = '2027-01-01T00:00:00Z';
  await change(vault, id, { expires_at: soon });
  world.advance(365 * 86_400_000);
  // What has expired may keep its expiry while other rights change.
  await change(vault, id, { expires_at: soon, certificates: ['b'] });
  assert.deepEqual((await viewApiKey(vault, id)).certificates, ['b']);
});
