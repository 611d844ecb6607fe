/** What the doctor says about ACME clients: those that expire, and those whose issuer is gone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { createAcmeClientInput } from '../../../src/domain/acme-server/clients/acme-client-inputs.ts';
import { createAcmeClient, revokeAcmeClient } from '../../../src/domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { acmeClientFindings } from '../../../src/domain/doctor/acme-client-findings.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { testVault } from '../../harness/test-vault.ts';

const create = async (vault: Vault, name: string, others: object = {}) => {
  const input = parseInput(createAcmeClientInput, { name, domains: ['*.example.com'], ...others });
  return (await createAcmeClient(vault, localCli, input)).id;
};

const said = async (vault: Vault) =>
  (await acmeClientFindings(vault)).map(({ status, message }) => `${status}: ${message}`);

test('expiring clients and clients with a deleted issuer are reported, revoked clients are not', async (t) => {
  const { vault, dataDir } = await testVault(t);
  assert.deepEqual(await said(vault), []);
  await create(vault, 'later', { expires_at: '2027-11-21T12:00:00Z' });
  assert.deepEqual(await said(vault), ['ok: none of 1 expires within two weeks, and all have their issuers']);
  await create(vault, 'soon', { expires_at: '2026-11-30T00:00:00Z' });
  const revoked = await create(vault, 'revoked', { expires_at: '2026-11-30T00:00:00Z' });
  await revokeAcmeClient(vault, localCli, revoked);
  outside(dataDir, (db) =>
    db.exec(`update acme_clients set issuers = '["local-ca","gone"]' where name = 'later'`),
  );
  assert.deepEqual(await said(vault), [
    'warning: ACME client 1 (later) names issuers that do not exist: gone',
    'warning: ACME client 2 (soon) expires on 2026-11-30T00:00:00Z',
  ]);
});

test('an expired client is reported for 30 days', async (t) => {
  const { vault, world } = await testVault(t);
  await create(vault, 'old', { expires_at: '2026-11-30T00:00:00Z' });
  const end = Date.parse('2026-11-30T00:00:00Z');
  for (const after of [0, 30 * day - 1]) {
    world.advance(end + after - world.now());
    assert.deepEqual(await said(vault), ['warning: ACME client 1 (old) expired on 2026-11-30T00:00:00Z']);
  }
  world.advance(1);
  assert.deepEqual(await said(vault), ['ok: none of 1 expires within two weeks, and all have their issuers']);
});

test('at most ten client findings are listed, followed by the number of the rest', async (t) => {
  const { vault } = await testVault(t);
  for (let at = 0; at < 12; at += 1) {
    await create(vault, `client-${at}`, { expires_at: '2026-11-30T00:00:00Z' });
  }
  const findings = await said(vault);
  assert.deepEqual([findings.length, findings.at(-1)], [11, 'warning: 2 more findings about ACME clients']);
});
