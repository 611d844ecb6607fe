/** Authentication: a raw value is somebody's or nobody's, and a change of rights counts from the next look on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { rotateApiKey } from '../../../src/domain/access/api-key-rotation.ts';
import { createApiKey, revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { Authenticator, apiKeyState } from '../../../src/domain/access/authentication.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createApiKeyInput, createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { testVault } from '../../harness/test-vault.ts';

/** A vault with the certificates a and b and one key for a, and a way of asking as a request does. */
async function vaultWithKey(t: Parameters<typeof testVault>[0], key: Record<string, unknown> = {}) {
  const opened = await testVault(t);
  const { vault } = opened;
  for (const name of ['a', 'b']) {
    const input = parseInput(createCertificateInput, { name, domains: ['a.example'] });
    await createCertificate(vault, localCli, input);
  }
  const usual = { name: 'deploy', scopes: ['certificates:read'], certificates: ['a'] };
  const { id, raw } = await createApiKey(
    vault,
    localCli,
    parseInput(createApiKeyInput, { ...usual, ...key }),
  );
  const authenticator = new Authenticator(vault);
  const ask = async (value = raw.expose()) => {
    await vault.freshness.look();
    return authenticator.authenticate(value);
  };
  return { ...opened, authenticator, id, raw: raw.expose(), ask };
}

test('an active key authenticates with its scopes and allowlist', async (t) => {
  const { ask, id, raw } = await vaultWithKey(t);
  assert.deepEqual(await ask(), {
    state: 'active',
    identity: {
      kind: 'api-key',
      id,
      name: 'deploy',
      prefix: raw.slice(0, 15),
      scopes: new Set(['certificates:read']),
      certificates: new Set(['a']),
      networks: 'any',
      profiles: 'any',
      role: null,
      certificateLabels: [],
      reach: 'any',
      clientCertificate: null,
      expiresAt: null,
      replacedAt: null,
    },
  });
});

test('a key created for * authenticates for any certificate', async (t) => {
  const { ask } = await vaultWithKey(t, { certificates: ['*'] });
  assert.equal((await ask())?.identity.certificates, 'any');
});

const nobodies: Record<string, (raw: string) => string> = {
  'an empty string': () => '',
  'a string that is not a key': () => 'secret',
  'an unknown prefix': (raw) => `vk_${'x'.repeat(12)}${raw.slice(15)}`,
  'a wrong secret': (raw) => `${raw.slice(0, 16)}${'A'.repeat(43)}`,
  'a secret with one letter changed': (raw) => raw.slice(0, -1) + (raw.endsWith('A') ? 'B' : 'A'),
  'a prefix without a secret': (raw) => raw.slice(0, 15),
  'a key with a trailing space': (raw) => `${raw} `,
};

for (const [what, make] of Object.entries(nobodies)) {
  test(`${what} is rejected, before and after the key is cached`, async (t) => {
    const { ask, raw } = await vaultWithKey(t);
    assert.equal(await ask(make(raw)), undefined);
    await ask();
    assert.equal(await ask(make(raw)), undefined);
  });
}

test('a key is active until its expiry and expired from it on', async (t) => {
  const { ask, world } = await vaultWithKey(t, { expires_at: '2026-11-22T12:00:00Z' });
  world.advance(day - 1);
  assert.equal((await ask())?.state, 'active');
  world.advance(1);
  assert.equal((await ask())?.state, 'expired');
});

test('authentication returns the state revoked and the id of a revoked key', async (t) => {
  const { ask, vault, id } = await vaultWithKey(t);
  assert.equal((await ask())?.state, 'active');
  await revokeApiKey(vault, localCli, id);
  const revoked = await ask();
  assert.equal(revoked?.state, 'revoked');
  assert.equal(revoked?.identity.id, id);
});

test('a revocation by another process takes effect at the next freshness check', async (t) => {
  const { ask, dataDir, world } = await vaultWithKey(t);
  await ask();
  const { vault: other } = await testVault(t, { dataDir, world });
  await revokeApiKey(other, localCli, 1);
  assert.equal((await ask())?.state, 'revoked');
});

test('a key deleted by another process is rejected at the next freshness check', async (t) => {
  const { ask, dataDir } = await vaultWithKey(t);
  await ask();
  outside(dataDir, (db) => db.exec('delete from api_key_certificates; delete from api_keys'));
  assert.equal(await ask(), undefined);
});

test('the database is queried only for the first authentication of a key while nothing changes', async (t) => {
  const { ask, vault } = await vaultWithKey(t);
  const select = t.mock.method(vault.db.reader, 'executeQuery');
  await ask();
  const asked = select.mock.callCount();
  assert(asked > 0);
  for (let n = 0; n < 10; n += 1) await ask();
  assert.equal(select.mock.callCount(), asked);
});

test('a rotated key needs no query with either secret once both are cached', async (t) => {
  const { ask, vault, id, raw, authenticator } = await vaultWithKey(t);
  const { raw: next } = await rotateApiKey(vault, localCli, id, { overlap: day });
  const both = [raw, next.expose()];
  for (const one of both) assert.equal((await ask(one))?.identity.prefix, one.slice(0, 15));
  const select = t.mock.method(vault.db.reader, 'executeQuery');
  for (const one of both) {
    const found = authenticator.authenticate(one);
    assert(found !== undefined && !(found instanceof Promise), 'it is answered without waiting');
    assert.equal(found.state, 'active');
  }
  assert.equal(select.mock.callCount(), 0);
});

test('a rotated secret is active during its overlap and replaced afterward; wrong secrets are rejected', async (t) => {
  const { ask, vault, id, raw, world } = await vaultWithKey(t);
  const { raw: next } = await rotateApiKey(vault, localCli, id, { overlap: day });
  const wrong = [
    `${raw.split('.')[0]}.${next.expose().split('.')[1]}`,
    `${raw.slice(0, 16)}${'A'.repeat(43)}`,
  ];
  for (const one of wrong) assert.equal(await ask(one), undefined);
  world.advance(day - 1);
  assert.equal((await ask())?.state, 'active');
  world.advance(1);
  const replaced = await ask();
  assert.deepEqual([replaced?.state, replaced?.identity.id], ['replaced', id]);
  assert.equal((await ask(next.expose()))?.state, 'active');
  for (const one of wrong) assert.equal(await ask(one), undefined);
});

test('apiKeyState returns revoked for a revoked key even if it has expired', () => {
  const cases = [
    [null, null, 'active'],
    [null, 11, 'active'],
    [null, 10, 'expired'],
    [5, null, 'revoked'],
    [5, 1, 'revoked'],
    [50, 11, 'revoked'],
  ] as const;
  for (const [revoked_at, expires_at, state] of cases) {
    assert.equal(apiKeyState({ revoked_at, expires_at }, 10), state);
  }
});
