/** What the doctor says about endpoints: how many are in each state that needs a person, and how to list them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour } from '../../../src/base/duration.ts';
import { updateEndpoint } from '../../../src/db/tables/endpoints.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { endpointFindings } from '../../../src/domain/doctor/endpoint-findings.ts';
import { addEndpoint } from '../../../src/domain/endpoints/endpoint-changes.ts';
import { createEndpointInput } from '../../../src/domain/endpoints/endpoint-inputs.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { giveVersion, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

test('endpoints are counted by state, with the command that lists them', async (t) => {
  const { vault, world } = await testVault(t);
  await makeCertificate(vault, 'web');
  const add = (address: string, certificate: string | null) =>
    addEndpoint(vault, localCli, parseInput(createEndpointInput, { address, certificate }));
  const seen = async (id: number, changes: object = {}) => {
    const now = world.now();
    const served = {
      fingerprint_sha256: 'ab'.repeat(32),
      version: 1,
      not_before: now,
      not_after: now + 90 * day,
    };
    await vault.db.write((writer) => updateEndpoint(writer, id, { ...served, ...changes }));
  };
  const said = async () =>
    (await endpointFindings(vault)).map(
      ({ check, status, message, hint }) => `${check} ${status}: ${message}${hint ? ` (${hint})` : ''}`,
    );
  assert.deepEqual(await said(), [], 'nothing without endpoints');
  const own = await add('www1.test', 'web');
  assert.deepEqual(await said(), [], 'nothing before the first check');
  await seen(own);
  assert.deepEqual(await said(), ['endpoints ok: the only one is current']);
  await seen(await add('www2.test', 'web'));
  assert.deepEqual(await said(), ['endpoints ok: all 2 are current']);
  await giveVersion(vault, 'web');
  world.advance(day + hour);
  for (const [address, certificate, changes] of [
    ['gone.test', 'web', { fingerprint_sha256: null, failures: 2, error: 'connection refused' }],
    ['other.test', 'web', { version: null }],
    ['shop.test', null, { problem: 'self-signed certificate' }],
    ['bank.test', null, { not_before: world.now() - 80 * day, not_after: world.now() + day }],
    ['new.test', 'web', { version: 2 }],
  ] as const)
    await seen(await add(address, certificate), changes);
  await add('unchecked.test', null);
  assert.deepEqual(await said(), [
    'endpoints warning: 1 of 7 is unreachable: no certificate in two checks (Try: vault endpoint list --state unreachable)',
    'endpoints warning: 1 of 7 is unknown: another certificate is served (Try: vault endpoint list --state unknown)',
    'endpoints warning: 2 of 7 are outdated: an older version is served a day after the renewal (Try: vault endpoint list --state outdated)',
    'endpoints warning: 1 of 7 is untrusted: clients reject the certificate (Try: vault endpoint list --state untrusted)',
    'endpoints warning: 1 of 7 is expiring: the certificate expires soon or has expired (Try: vault endpoint list --state expiring)',
  ]);
});
