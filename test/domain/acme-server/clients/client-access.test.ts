/** What an ACME client may do: who is refused, in which words, and that only rows of the vault count. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Identifier } from '../../../../src/base/identifier.ts';
import { createAcmeClientInput } from '../../../../src/domain/acme-server/clients/acme-client-inputs.ts';
import { viewAcmeClient } from '../../../../src/domain/acme-server/clients/acme-client-views.ts';
import {
  createAcmeClient,
  rotateAcmeClient,
} from '../../../../src/domain/acme-server/clients/acme-clients.ts';
import {
  type AcmeClient,
  findAcmeClient,
  findClientByKid,
  profileForOrder,
  refusalOfClient,
  refusalOfNames,
} from '../../../../src/domain/acme-server/clients/client-access.ts';
import { NamePatterns } from '../../../../src/domain/acme-server/clients/name-patterns.ts';
import { AcmeProblem } from '../../../../src/domain/acme-server/protocol/acme-problem.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../../src/domain/inputs.ts';
import type { Vault } from '../../../../src/domain/vault.ts';
import { parseIpNetwork } from '../../../../src/net/ip-network.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { testVault } from '../../../harness/test-vault.ts';

const client: AcmeClient = {
  id: 3,
  name: 'web',
  domains: new NamePatterns(['*.example.com', '192.0.2.0/24']),
  issuers: ['local-ca'],
  profiles: 'any',
  networks: 'any',
  validation: [],
  rate: undefined,
  expiresAt: null,
  revokedAt: null,
};

const request = { ip: '192.0.2.1', issuer: 'local-ca', now: 1000 };
const network = parseIpNetwork('10.0.0.0/8');
assert(network !== undefined);
const networks = [network];

const names = (...texts: string[]) => texts as Identifier[];

const refusals: Readonly<Record<string, readonly [Partial<AcmeClient>, Partial<typeof request>, RegExp]>> = {
  'a revoked client': [
    { revokedAt: 1 },
    {},
    /^ACME client 3 \(web\) was revoked\. Create .*acme-client create"\.$/,
  ],
  'an expired client': [
    { expiresAt: 1000 },
    {},
    /^ACME client 3 \(web\) expired at 1970-01-01T00:00:01Z\. Extend it .*update 3 --expires-at TIME"\.$/,
  ],
  'a client outside its networks': [
    { networks },
    {},
    /may not be used from 192\.0\.2\.1\. .*update 3 --allow-ip CIDR"\.$/,
  ],
  'a client whose networks are all unreadable': [{ networks: [] }, {}, /may not be used from 192\.0\.2\.1/],
  'a client at the directory of another issuer': [
    {},
    { issuer: 'other-ca' },
    /may not use issuer other-ca, only local-ca\. .*update 3 --issuer NAME"\.$/,
  ],
};

for (const [what, [rights, asked, detail]] of Object.entries(refusals)) {
  test(`${what} is rejected as unauthorized with the reason`, () => {
    const refusal = refusalOfClient({ ...client, ...rights }, { ...request, ...asked });
    assert.equal(refusal?.type, 'unauthorized');
    assert.match(refusal.message, detail);
  });
}

test('a request from an unknown address is rejected when the client is limited to networks', () => {
  const refusal = refusalOfClient({ ...client, networks }, { ...request, ip: undefined });
  assert.match(refusal?.message ?? '', /may not be used from an unknown address/);
});

test('an active client is accepted at its issuer from its networks', () => {
  assert.equal(
    refusalOfClient({ ...client, networks, expiresAt: 1001 }, { ...request, ip: '10.1.2.3' }),
    undefined,
  );
});

test('all forbidden names are rejected in one problem, each with a subproblem', () => {
  const refusal = refusalOfNames(client, names('a.example.com', 'example.com', '198.51.100.1'));
  assert.equal(refusal?.type, 'rejectedIdentifier');
  assert.match(
    refusal.message,
    /^ACME client 3 \(web\) may not order example\.com, 198\.51\.100\.1; it may order \*\.example\.com, 192\.0\.2\.0\/24\. /,
  );
  assert.deepEqual(
    refusal.subproblems.map(({ type, identifier }) => [type, identifier]),
    [
      ['rejectedIdentifier', 'example.com'],
      ['rejectedIdentifier', '198.51.100.1'],
    ],
  );
  assert.equal(refusalOfNames(client, names('a.example.com', '*.example.com', '192.0.2.9')), undefined);
});

test('a client confined to profiles can use only these, and its only profile of an issuer is the default', () => {
  const confined = { ...client, profiles: new Set(['local-ca/web', 'other/mail', 'other/web']) };
  assert.equal(profileForOrder(client, 'local-ca', undefined), undefined);
  assert.equal(profileForOrder(client, 'local-ca', 'any'), 'any');
  assert.equal(profileForOrder(confined, 'local-ca', undefined), 'web');
  assert.equal(profileForOrder(confined, 'other', 'mail'), 'mail');
  for (const [issuer, requested, detail] of [
    ['local-ca', 'mail', /^Profile mail is refused: .* may use only web of issuer local-ca\.$/],
    ['other', undefined, /^The order names no profile: .* may use only mail, web of issuer other\.$/],
    ['third', undefined, /may use no profile of issuer third\.$/],
  ] as const) {
    assert.throws(
      () => profileForOrder(confined, issuer, requested),
      (error) =>
        error instanceof AcmeProblem && error.type === 'invalidProfile' && detail.test(error.message),
    );
  }
  assert.equal(refusalOfNames(confined, names('a.example.com'), 'other/web'), undefined);
  assert.equal(refusalOfNames(confined, names('a.example.com'), 'local-ca/mail')?.type, 'invalidProfile');
});

const create = (vault: Vault, name = 'web') => {
  const input = { name, domains: ['*.example.com'], rate: 5, expires_at: '2030-01-01T00:00:00Z' };
  return createAcmeClient(vault, localCli, parseInput(createAcmeClientInput, input));
};

test('a key is found by its kid until a rotation replaces it; unknown ones are not found', async (t) => {
  const { vault } = await testVault(t);
  const { id, key } = await create(vault);
  const found = await findClientByKid(vault, key.kid);
  assert.deepEqual(
    [found?.client.id, found?.client.domains.texts, found?.client.rate, found?.client.expiresAt],
    [id, ['*.example.com'], 5, Date.UTC(2030, 0, 1)],
  );
  assert.deepEqual(found?.hmacKey.expose(), key.hmacKey.expose());
  const rotated = await rotateAcmeClient(vault, localCli, id);
  assert.equal(await findClientByKid(vault, key.kid), undefined);
  const later = await findClientByKid(vault, rotated.key.kid);
  assert.deepEqual(later?.hmacKey.expose(), rotated.key.hmacKey.expose());
  assert.equal((await findAcmeClient(vault, id))?.name, 'web');
  for (const kid of ['', 'x', '0'.repeat(24), "' or 1=1 --"]) {
    assert.equal(await findClientByKid(vault, kid), undefined);
  }
  assert.equal(await findAcmeClient(vault, 99), undefined);
});

suite('a client row modified outside the vault', async () => {
  const forged: Readonly<Record<string, string>> = {
    name: "'root'",
    kid: "'1'",
    domains: `'["*"]'`,
    issuers: `'["letsencrypt"]'`,
    profiles: "'[]'",
    allowed_networks: `'["0.0.0.0/0"]'`,
    validation: `'["http-01"]'`,
    rate: 'null',
    expires_at: 'null',
    revoked_at: '1',
    tag: 'null',
  };
  for (const [column, value] of Object.entries(forged)) {
    test(`is rejected and logged if it has another ${column}`, async (t) => {
      const { vault, dataDir, log } = await testVault(t);
      const { id, key } = await create(vault);
      outside(dataDir, (db) => db.exec(`update acme_clients set ${column} = ${value}`));
      assert.equal(await findAcmeClient(vault, id), undefined);
      assert.equal(await findClientByKid(vault, column === 'kid' ? '1' : key.kid), undefined);
      assert.match(
        log.lines.join('\n'),
        /ACME client refused: its database row was modified outside the vault/,
      );
    });
  }

  test('is rejected if it has the sealed key of another client', async (t) => {
    const { vault, dataDir } = await testVault(t);
    const { key } = await create(vault);
    const { id: other } = await create(vault, 'other');
    outside(dataDir, (db) =>
      db.exec(
        `update acme_clients set sealed_hmac_key = (select sealed_hmac_key from acme_clients where id = ${other})`,
      ),
    );
    await assert.rejects(findClientByKid(vault, key.kid), { name: 'SealError' });
  });
});

test('the last use of a client is noted at most once a minute', async (t) => {
  const { vault } = await testVault(t);
  const { id } = await create(vault);
  vault.keyUse.noteAcmeClient(id, '192.0.2.1');
  vault.keyUse.noteAcmeClient(id, '192.0.2.2');
  await vault.keyUse.write();
  const { last_used_at, last_used_ip } = await viewAcmeClient(vault, id);
  assert.deepEqual([last_used_at, last_used_ip], ['2026-11-21T12:00:00Z', '192.0.2.1']);
});
