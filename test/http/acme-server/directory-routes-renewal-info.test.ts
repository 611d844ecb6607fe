/** Renewal information over HTTP (RFC 9773): found by the directory, and read by the client that the vault has. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcmeClient } from '../../../src/acme/acme-client.ts';
import { fetchRenewalInfo, renewalInfoId } from '../../../src/acme/renewal-info.ts';
import { hour } from '../../../src/base/duration.ts';
import { silentLog } from '../../../src/base/log.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { revokeVersion } from '../../../src/domain/certificates/revocation.ts';
import { issueOwned } from '../../harness/acme/owned-certificate.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { forever } from '../../harness/issuance/renewal-fixtures.ts';

test('renewal info has a future window for a valid certificate, and a past window after its revocation', async (t) => {
  const { url, vault, world, get } = await checkedServer(t);
  const owned = await issueOwned(vault, ['www.example.com']);
  const id = renewalInfoId(owned.leaf) ?? '';
  const directoryUrl = `${url}/acme/local-ca/directory`;
  const client = new AcmeClient({ world, outbound: vault.outbound, log: silentLog }, { directoryUrl });
  const before = await fetchRenewalInfo(client, id, forever);
  assert(before !== undefined && before.windowStart > world.now() && before.retryAfterMs === 6 * hour);
  await revokeVersion(vault, localCli, owned.name, { version: undefined, reason: 'superseded' }, forever);
  const after = await fetchRenewalInfo(client, id, forever);
  assert(after !== undefined && after.windowEnd < world.now());
  const answer = await get(`/acme/local-ca/renewal-info/${id}`);
  assert.deepEqual([answer.status, answer.headers.get('Retry-After')], [200, '21600']);
});

test('renewal info returns 404 for an unknown certificate or issuer, and 400 for a malformed certificate id', async (t) => {
  const { get } = await checkedServer(t);
  for (const [id, status] of [
    ['aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE', 404],
    ['x', 400],
    ['a%2Fb', 400],
  ] as const) {
    const answer = await get(`/acme/local-ca/renewal-info/${id}`);
    assert.equal(answer.status, status);
    assert.equal(((await answer.json()) as { type: string }).type, 'urn:ietf:params:acme:error:malformed');
  }
  const elsewhere = await get('/acme/nobody/renewal-info/AQ.AQ');
  assert.equal(elsewhere.status, 404);
});
