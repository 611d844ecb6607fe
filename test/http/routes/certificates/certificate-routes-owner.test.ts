/** Certificates of ACME clients over HTTP: shown with their owner; revoked and deleted, but not renewed or changed. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { day } from '../../../../src/base/duration.ts';
import { encodePem } from '../../../../src/crypto/pem.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { rotateCa } from '../../../../src/domain/renewals/ca-rotation.ts';
import { requestRenewals } from '../../../../src/domain/renewals/renewal-spread.ts';
import { queueDueRenewals } from '../../../../src/domain/renewals/renewals.ts';
import { issueOwned } from '../../../harness/acme/owned-certificate.ts';
import { identifier, makeChain } from '../../../harness/ca/private-chain.ts';
import { administration } from '../../../harness/http/administration.ts';
import { eventsOf, makeCertificate } from '../../../harness/http/fixtures.ts';

const path = '/api/v1/certificates/www.example.com';

type Shown = {
  name: string;
  owner: { type: string; id: number; name: string } | null;
  auto_renew: boolean;
  key_holder: string;
  status: string;
  artifacts: { file: string }[];
};
type Problem = { code: string; detail: string; hint?: string };

async function prepared(t: Parameters<typeof administration>[0]) {
  const administrator = await administration(t);
  const { vault, world } = administrator.server;
  const owned = await issueOwned(vault, ['www.example.com']);
  return { ...administrator, vault, world, owned };
}

test('a certificate of an ACME client is listed and shown with its owner, and has no private key', async (t) => {
  const { vault, expect, owned } = await prepared(t);
  await makeCertificate(vault, 'own');
  const shown = await expect<Shown>(200, 'GET', path);
  assert.deepEqual(shown.owner, { type: 'acme-client', id: owned.client.id, name: 'web' });
  assert.deepEqual([shown.auto_renew, shown.key_holder, shown.status], [false, 'client', 'valid']);
  assert(!shown.artifacts.some(({ file }) => file === 'private.key'));
  for (const query of ['', '?search=e', '?sort=expiry']) {
    const all = await expect<Shown[]>(200, 'GET', `/api/v1/certificates${query}`);
    const owners = all.map(({ name, owner }) => [name, owner?.name ?? null]).toSorted();
    assert.deepEqual(owners, [
      ['own', null],
      ['www.example.com', 'web'],
    ]);
  }
  assert.equal((await expect<Problem>(404, 'GET', `${path}/private.key`)).code, 'private_key_not_held');
});

suite('a certificate of an ACME client', () => {
  test('rejects renew, change and sign requests, and reports the client', async (t) => {
    const { vault, expect, owned } = await prepared(t);
    const csr = encodePem('CERTIFICATE REQUEST', owned.csr);
    for (const [method, place, body] of [
      ['POST', `${path}/renew`, undefined],
      ['POST', `${path}/sign`, { csr }],
      ['PATCH', path, { auto_renew: true }],
      ['PATCH', path, { domains: ['other.example.com'] }],
      ['PATCH', path, { disabled: true }],
    ] as const) {
      const { code, detail } = await expect<Problem>(409, method, place, body);
      assert.equal(code, 'not_renewable', `${method} ${place}`);
      assert.match(detail, /belongs to the ACME client "web", which renews and changes it/);
    }
    const rows = await vault.db.reader.selectFrom('renewals').select('id').execute();
    assert.deepEqual(rows, []);
  });

  test('is not replaced by an import or a new certificate with the same name', async (t) => {
    const { expect } = await prepared(t);
    const { intermediate, leaf } = await makeChain({
      leaf: { identifiers: [identifier('www.example.com')] },
    });
    const pems = [leaf, intermediate].map(({ certificate }) => encodePem('CERTIFICATE', certificate));
    const files = [...pems, encodePem('PRIVATE KEY', leaf.privateKey.expose())].map((pem, index) => ({
      name: `${index}.pem`,
      text: pem,
    }));
    const refused = await expect<Problem>(409, 'POST', '/api/v1/imports', { name: 'www.example.com', files });
    assert.equal(refused.code, 'not_renewable');
    const wanted = { name: 'www.example.com', domains: ['www.example.com'] };
    const taken = await expect<Problem>(409, 'POST', '/api/v1/certificates', wanted);
    assert.match(taken.detail, /already exists; it belongs to the ACME client "web"/);
  });

  test('is not renewed by the scheduler, bulk renewals or a CA rotation', async (t) => {
    const { vault, world, owned } = await prepared(t);
    world.advance(400 * day);
    assert.equal(await queueDueRenewals(vault, 100), 0);
    const many = await requestRenewals(vault, localCli, [owned.name]);
    assert.deepEqual([many.queued, many.alreadyOpen], [0, 0]);
    assert.equal((await rotateCa(vault, localCli, owned.issuer)).queued, 0);
  });
});

test('an owned certificate can be revoked and deleted, and has its owner again when restored', async (t) => {
  const { server, expect, owned } = await prepared(t);
  const revoked = await expect<{ version: number; renewal: number | null }>(200, 'POST', `${path}/revoke`, {
    reason: 'superseded',
  });
  assert.deepEqual([revoked.version, revoked.renewal], [1, null]);
  await expect(204, 'DELETE', path);
  await expect(404, 'GET', path);
  const [deleted] = await expect<{ id: number }[]>(200, 'GET', '/api/v1/deleted-certificates');
  await expect(200, 'POST', `/api/v1/deleted-certificates/${deleted?.id}/restore`, {});
  const { owner } = await expect<Shown>(200, 'GET', path);
  assert.equal(owner?.id, owned.client.id);
  const actors = eventsOf(server.dataDir, 'certificate.revoke').map(({ actor }) => actor);
  assert.deepEqual(actors, ['admin:alice']);
});

test('a certificate whose client was deleted meanwhile is restored without an owner', async (t) => {
  const { vault, expect, owned } = await prepared(t);
  await expect(204, 'DELETE', path);
  await vault.db.write((writer) =>
    writer.deleteFrom('acme_clients').where('id', '=', owned.client.id).execute(),
  );
  const [deleted] = await expect<{ id: number }[]>(200, 'GET', '/api/v1/deleted-certificates');
  await expect(200, 'POST', `/api/v1/deleted-certificates/${deleted?.id}/restore`, {});
  assert.equal((await expect<Shown>(200, 'GET', path)).owner, null);
});
