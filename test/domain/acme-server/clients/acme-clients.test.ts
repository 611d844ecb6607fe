/**
 * ACME clients: what is refused and why, what is kept and shown, and that every change has its audit event or did not
 * happen.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day } from '../../../../src/base/duration.ts';
import { Problem, type ProblemCode } from '../../../../src/base/problem.ts';
import { changeAcmeClient } from '../../../../src/domain/acme-server/clients/acme-client-change.ts';
import {
  createAcmeClientInput,
  updateAcmeClientInput,
} from '../../../../src/domain/acme-server/clients/acme-client-inputs.ts';
import { textOfKey } from '../../../../src/domain/acme-server/clients/acme-client-keys.ts';
import {
  acmeClientIdFrom,
  allAcmeClients,
  pageOfAcmeClients,
  viewAcmeClient,
} from '../../../../src/domain/acme-server/clients/acme-client-views.ts';
import {
  createAcmeClient,
  deleteAcmeClient,
  revokeAcmeClient,
  rotateAcmeClient,
} from '../../../../src/domain/acme-server/clients/acme-clients.ts';
import { findClientByKid } from '../../../../src/domain/acme-server/clients/client-access.ts';
import { type Actor, localCli } from '../../../../src/domain/audit/audit.ts';
import { verifyChain } from '../../../../src/domain/audit/audit-verification.ts';
import { parseInput } from '../../../../src/domain/inputs.ts';
import type { Vault } from '../../../../src/domain/vault.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { testVault } from '../../../harness/test-vault.ts';

const actor: Actor = { name: 'admin:eve', ip: '192.0.2.1', requestId: 'r1' };

const create = async (vault: Vault, others: object = {}) =>
  createAcmeClient(
    vault,
    actor,
    parseInput(createAcmeClientInput, { name: 'caddy', domains: ['*.example.com'], ...others }),
  );

const change = async (vault: Vault, id: number, changes: object) =>
  changeAcmeClient(vault, actor, id, parseInput(updateAcmeClientInput, changes));

const rejects = (work: Promise<unknown>, code: ProblemCode, message: RegExp) =>
  assert.rejects(work, (error) => {
    assert(error instanceof Problem, String(error));
    assert.equal(error.code, code);
    assert.match(error.body.detail, message);
    return true;
  });

async function events({ db }: Vault) {
  const query = db.reader.selectFrom('audit_events').selectAll().where('action', 'like', 'acme_client.%');
  return (await query.orderBy('id').execute()).map(({ actor: who, action, resource, detail }) => ({
    ...{ actor: who, action, resource },
    detail: JSON.parse(detail) as Record<string, unknown>,
  }));
}

const badInputs: Readonly<Record<string, readonly [others: object, message: RegExp]>> = {
  'no name pattern': [{ domains: [] }, /^domains: at least one pattern of names is required/],
  'an invalid name pattern': [
    { domains: ['a.example', '*a.example'] },
    /^domains\.1: "\*a\.example" has "\*" in the middle/,
  ],
  '1001 name patterns': [
    { domains: Array.from({ length: 1001 }, (_, at) => `h${at}.example`) },
    /^domains: an ACME client has at most 1000 patterns/,
  ],
  'an unknown issuer': [{ issuers: ['local-cb'] }, /^Unknown issuer "local-cb"\. Did you mean "local-ca"\?/],
  'no issuer': [{ issuers: [] }, /at least one issuer is required/],
  'an unknown profile': [{ profiles: ['local-ca/web'] }, /^Issuer local-ca has no profile "web"/],
  'a profile of another issuer': [{ profiles: ['other/web'] }, /names no private CA among the issuers/],
  'an invalid network': [{ allowed_networks: ['10.1.2.3/8'] }, /is not a network/],
  'an unknown validation method': [
    { validation: ['dns-persist-01'] },
    /is not a validation: use http-01, tls-alpn-01, dns-01/,
  ],
  'a rate of 0': [{ rate: 0 }, /a rate is at least 1 order per hour/],
  'an expiry in the past': [{ expires_at: '2026-11-21T12:00:00Z' }, /^expires_at: .* is not in the future\./],
  'a name with a line break': [{ name: 'a\nb' }, /must not contain control characters/],
};

for (const [what, [others, message]] of Object.entries(badInputs)) {
  test(`a client with ${what} is rejected, and nothing is stored`, async (t) => {
    const { vault } = await testVault(t);
    await rejects(create(vault, others), 'invalid_request', message);
    assert.deepEqual([await pageOfAcmeClients(vault, { limit: 10 }), await events(vault)], [[], []]);
  });
}

test('a client is stored with its key sealed, and neither the list nor the audit log contains the key', async (t) => {
  const { vault } = await testVault(t);
  const { id, key } = await create(vault, {
    allowed_networks: ['192.0.2.0/24'],
    validation: ['dns-01', 'http-01'],
  });
  assert.match(key.kid, /^[0-9a-f]{24}$/);
  const text = textOfKey(key).expose();
  assert.match(text, /^[A-Za-z0-9_][A-Za-z0-9_-]{42}$/);
  const [view] = await pageOfAcmeClients(vault, { limit: 10 });
  assert.deepEqual(view, {
    id,
    name: 'caddy',
    kid: key.kid,
    domains: ['*.example.com'],
    issuers: ['local-ca'],
    profiles: [],
    allowed_networks: ['192.0.2.0/24'],
    validation: ['http-01', 'dns-01'],
    rate: null,
    created_at: '2026-11-21T12:00:00Z',
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
    last_used_ip: null,
    state: 'active',
    labels: [],
  });
  const row = await vault.db.reader.selectFrom('acme_clients').selectAll().executeTakeFirstOrThrow();
  for (const encoding of ['hex', 'base64', 'base64url'] as const) {
    const raw = key.hmacKey.expose().toString(encoding);
    for (const shown of [view, row, await events(vault), row.sealed_hmac_key.toString(encoding)]) {
      assert(!JSON.stringify(shown).includes(raw));
    }
  }
  const found = await findClientByKid(vault, key.kid);
  assert.equal(found?.hmacKey.expose().toString('base64url'), text);
});

test('no key begins with a dash, which programs take for an option', async (t) => {
  const { vault } = await testVault(t);
  t.mock.method(vault.world, 'randomBytes', (size: number) => Buffer.alloc(size, 0xfb));
  const { key } = await create(vault);
  assert.match(textOfKey(key).expose(), /^[^-]/);
});

test('the audit events say who did what to which client', async (t) => {
  const { vault } = await testVault(t);
  const { id, key } = await create(vault, { expires_at: '2027-01-01T00:00:00Z' });
  assert.equal(await change(vault, id, { name: 'web', rate: 10 }), true);
  assert.equal(await change(vault, id, { name: 'web', rate: 10 }), false);
  const rotated = await rotateAcmeClient(vault, actor, id);
  await revokeAcmeClient(vault, actor, id);
  await revokeAcmeClient(vault, actor, id);
  await deleteAcmeClient(vault, actor, id);
  const rights = {
    ...{ name: 'caddy', domains: ['*.example.com'], issuers: ['local-ca'], profiles: [] },
    ...{ allowed_networks: [], validation: [], rate: null, expires_at: '2027-01-01T00:00:00Z' },
    labels: [],
  };
  const common = { actor: 'admin:eve', resource: `acme-client:${id}` };
  const { kid } = key;
  const newKid = rotated.key.kid;
  assert.deepEqual(await events(vault), [
    { ...common, action: 'acme_client.create', detail: { ...rights, kid } },
    {
      ...{ ...common, action: 'acme_client.update' },
      detail: { ...rights, name: 'web', rate: 10, kid, before: { name: 'caddy', rate: null } },
    },
    {
      ...{ ...common, action: 'acme_client.rotate' },
      detail: { name: 'web', kid: newKid, previous_kid: kid },
    },
    { ...common, action: 'acme_client.revoke', detail: { name: 'web', kid: newKid } },
    { ...common, action: 'acme_client.delete', detail: { name: 'web', kid: newKid } },
  ]);
});

test('a client name stays taken after revocation until the client is deleted', async (t) => {
  const { vault } = await testVault(t);
  const { id } = await create(vault);
  await rejects(create(vault), 'acme_client_exists', /\(id 1\)\. .* vault acme-client rotate 1$/);
  const { id: other } = await create(vault, { name: 'other' });
  await rejects(change(vault, other, { name: 'caddy' }), 'acme_client_exists', /already exists/);
  await rejects(deleteAcmeClient(vault, actor, id), 'acme_client_active', /Fix: vault acme-client revoke 1$/);
  await revokeAcmeClient(vault, actor, id);
  await rejects(create(vault), 'acme_client_exists', /\(id 1, revoked\)\. .* vault acme-client delete 1$/);
  await deleteAcmeClient(vault, actor, id);
  await create(vault);
});

test('an unknown client name is rejected with the closest name, and an unknown id by every operation', async (t) => {
  const { vault } = await testVault(t);
  const { id } = await create(vault);
  assert.equal(await acmeClientIdFrom(allAcmeClients(vault), 'caddy'), id);
  await rejects(
    acmeClientIdFrom(allAcmeClients(vault), 'cady'),
    'acme_client_not_found',
    /Did you mean "caddy"\?/,
  );
  const acts = [
    () => viewAcmeClient(vault, 7),
    () => rotateAcmeClient(vault, actor, 7),
    () => change(vault, 7, {}),
  ];
  for (const act of acts) await rejects(act(), 'acme_client_not_found', /Unknown ACME client 7\./);
  await rejects(revokeAcmeClient(vault, actor, 7), 'acme_client_not_found', /acme-client list/);
  await rejects(deleteAcmeClient(vault, actor, 7), 'acme_client_not_found', /acme-client list/);
});

test('two concurrent rotations leave one valid key, and both are in the audit log', async (t) => {
  const { vault } = await testVault(t);
  const { id, key } = await create(vault);
  const rotated = await Promise.all([
    rotateAcmeClient(vault, actor, id),
    rotateAcmeClient(vault, localCli, id),
  ]);
  const found = await Promise.all(rotated.map((one) => findClientByKid(vault, one.key.kid)));
  assert.equal(found.filter((one) => one !== undefined).length, 1);
  assert.equal(await findClientByKid(vault, key.kid), undefined);
  const chain = (await events(vault)).slice(1).map(({ detail }) => [detail.previous_kid, detail.kid]);
  const { kid } = await viewAcmeClient(vault, id);
  assert.deepEqual([chain[0]?.[0], chain[1]?.[0], chain[1]?.[1]], [key.kid, chain[0]?.[1], kid]);
});

test('rotating an expired or revoked client or changing a revoked one is rejected; an expiry can be removed', async (t) => {
  const { vault, world } = await testVault(t);
  const { id } = await create(vault, { expires_at: '2026-11-22T12:00:00Z' });
  world.advance(2 * day);
  assert.equal((await viewAcmeClient(vault, id)).state, 'expired');
  await rejects(
    rotateAcmeClient(vault, actor, id),
    'acme_client_inactive',
    /has expired\. .*--expires-at TIME$/,
  );
  await change(vault, id, { expires_at: null });
  assert.equal((await viewAcmeClient(vault, id)).state, 'active');
  await revokeAcmeClient(vault, actor, id);
  await rejects(rotateAcmeClient(vault, actor, id), 'acme_client_inactive', /is revoked/);
  await rejects(change(vault, id, { name: 'new' }), 'acme_client_inactive', /is revoked/);
});

test('clients of an ACME issuer get a rate of 50 unless one is specified; clients of private CAs get none', async (t) => {
  const { vault } = await testVault(t);
  await vault.db.write(async (writer) => {
    const row = { name: 'letsencrypt', type: 'acme', created_at: 0 };
    await writer.insertInto('issuers').values(row).execute();
  });
  const rateOf = async (id: number) => (await viewAcmeClient(vault, id)).rate;
  const gateway = await create(vault, { issuers: ['letsencrypt'] });
  const unlimited = await create(vault, { name: 'b', issuers: ['letsencrypt'], rate: null });
  const own = await create(vault, { name: 'c' });
  assert.deepEqual(
    [await rateOf(gateway.id), await rateOf(unlimited.id), await rateOf(own.id)],
    [50, null, null],
  );
  await change(vault, own.id, { issuers: ['local-ca', 'letsencrypt'] });
  assert.equal(await rateOf(own.id), 50);
  await change(vault, unlimited.id, { name: 'd' });
  assert.equal(await rateOf(unlimited.id), null);
});

test('a client modified in the database can be revoked, but neither changed nor rotated', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const { id, key } = await create(vault);
  outside(dataDir, (db) => db.exec(`update acme_clients set domains = '["*"]'`));
  assert.equal(await findClientByKid(vault, key.kid), undefined);
  await rejects(change(vault, id, { name: 'x' }), 'invalid_request', /modified outside the vault/);
  await rejects(rotateAcmeClient(vault, actor, id), 'invalid_request', /vault acme-client revoke 1/);
  await revokeAcmeClient(vault, actor, id);
  assert.equal(await findClientByKid(vault, key.kid), undefined);
});

test('audit verification reports an old client row restored after a rotation or revocation', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const { id } = await create(vault);
  const old = await vault.db.reader.selectFrom('acme_clients').selectAll().executeTakeFirstOrThrow();
  await rotateAcmeClient(vault, actor, id);
  assert.deepEqual((await verifyChain(vault)).faults, []);
  const putBack = () =>
    outside(dataDir, (db) =>
      db
        .prepare('update acme_clients set kid = ?, sealed_hmac_key = ?, tag = ?, revoked_at = null')
        .run(old.kid, old.sealed_hmac_key, old.tag),
    );
  putBack();
  assert.match(
    JSON.stringify((await verifyChain(vault)).faults),
    new RegExp(`acme-client:1 with the kid ${old.kid}`),
  );
  await revokeAcmeClient(vault, actor, id);
  putBack();
  assert.match(JSON.stringify((await verifyChain(vault)).faults), /acme-client:1[^ ]/);
});
