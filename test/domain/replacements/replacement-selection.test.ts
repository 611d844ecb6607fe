/** The selection of a replacement: who is affected, what needs a person, and a preview that changes nothing. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import { encodePem } from '../../../src/crypto/pem.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { addEndpoint } from '../../../src/domain/endpoints/endpoint-changes.ts';
import { createEndpointInput } from '../../../src/domain/endpoints/endpoint-inputs.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { replacementInput, replacementRequest } from '../../../src/domain/replacements/replacement-inputs.ts';
import { previewReplacement } from '../../../src/domain/replacements/replacement-preview.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { issueOwned } from '../../harness/acme/owned-certificate.ts';
import { csrFor } from '../../harness/acme/server-client.ts';
import { importOne, makeKey } from '../../harness/http/fixtures.ts';
import { engine, tryWork } from '../../harness/issuance/engine-vault.ts';
import { change, makeCertificate, rowOf, silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { progressOf, renewed, replace, reporting, round } from '../../harness/issuance/replacements.ts';

/** `www` is of the ACME issuer `ca`; the others are of the private CA or imported. */
async function variety(t: TestContext) {
  const opened = await engine(t);
  const { vault } = opened;
  await makeCertificate(vault, 'shop', { labels: ['team=web', 'env=prod'] });
  await makeCertificate(vault, 'blog', { labels: ['team=web'] });
  await makeCertificate(vault, 'pinned', {
    domains: ['pinned.example.test'],
    csr: encodePem('CERTIFICATE REQUEST', Buffer.from(await csrFor(['pinned.example.test']), 'base64url')),
  });
  while ((await tryWork(vault)) !== undefined);
  await importOne(vault, 'bought', { chain: true });
  const owned = await issueOwned(vault, ['owned.example.test']);
  await makeCertificate(vault, 'new', { issuer: 'ca', labels: ['team=new'] });
  return { ...opened, owned };
}

async function preview(vault: Vault, input: object) {
  const request = replacementRequest(parseInput(replacementInput, input));
  return (await previewReplacement(vault, request)).certificates;
}

const named = (views: Awaited<ReturnType<typeof preview>>) =>
  views.map(({ certificate, obstacle }) => `${certificate}: ${obstacle ?? 'replaced'}`);

test('an issuer selects what it issued, with what needs a person, also if another one renews it now', async (t) => {
  const { vault, owned } = await variety(t);
  const other = await silentIssuer(vault, 'other');
  await change(vault, 'blog', { issuer_id: other });
  await change(vault, 'shop', { disabled_at: 1 });
  const { name } = (await vault.db.reader
    .selectFrom('certificates')
    .select('name')
    .where('acme_client_id', '=', owned.client.id)
    .executeTakeFirst()) ?? { name: '' };
  assert.deepEqual(named(await preview(vault, { issuer: 'local-ca' })), [
    'shop: it is disabled',
    'blog: replaced',
    'pinned: replaced',
    'bought: it was imported and has no issuer',
    `${name}: the ACME client web renews it`,
  ]);
  assert.deepEqual(named(await preview(vault, { issuer: 'ca' })), ['www: replaced']);
  await assert.rejects(preview(vault, { issuer: 'unknown' }), { code: 'invalid_request' });
});

test('labels select certificates that have all of them, and those without a version are left out', async (t) => {
  const { vault } = await variety(t);
  assert.deepEqual(named(await preview(vault, { labels: ['team=web'] })).sort(), [
    'blog: replaced',
    'shop: replaced',
  ]);
  assert.deepEqual(named(await preview(vault, { labels: ['team=web', 'env=prod'] })), ['shop: replaced']);
  assert.deepEqual(await preview(vault, { labels: ['team=new'] }), []);
  await assert.rejects(replace(vault, { labels: ['team=new'] }), { code: 'nothing_to_replace' });
});

test('one certificate without a version, or whose key the client holds, is refused with the cause', async (t) => {
  const { vault } = await variety(t);
  await assert.rejects(replace(vault, { certificate: 'new' }), { code: 'no_current_version' });
  await assert.rejects(replace(vault, { certificate: 'gone' }), { code: 'certificate_not_found' });
  await assert.rejects(replace(vault, { certificate: 'pinned' }), {
    code: 'nothing_to_replace',
    message: /pinned: the client holds its private key/,
  });
});

test('exactly one way to select certificates is accepted', async (t) => {
  const { vault } = await engine(t, { certificate: null });
  for (const input of [{}, { issuer: 'ca', certificate: 'www' }, { labels: [] }]) {
    await assert.rejects(replace(vault, input), { code: 'invalid_request' }, JSON.stringify(input));
  }
  for (const deadline of ['1', '31d', '-1h', '00']) {
    await assert.rejects(
      replace(vault, { certificate: 'www', deadline }),
      { code: 'invalid_request' },
      deadline,
    );
  }
});

test('a preview lists hosts, endpoints and API keys, and neither renews nor stores anything', async (t) => {
  const { vault } = await variety(t);
  const report = await reporting(vault);
  await report('one', 1);
  await report('two', 1);
  await makeKey(vault, { name: 'reader', certificates: ['www'], scopes: ['certificates:read'] });
  await makeKey(vault, { name: 'elsewhere', certificates: ['shop'], scopes: ['certificates:read'] });
  const endpoint = parseInput(createEndpointInput, { address: '127.0.0.1:8443', certificate: 'www' });
  await addEndpoint(vault, localCli, endpoint);
  const tables = ['replacements', 'replacement_certificates', 'renewals', 'audit_events'] as const;
  const counts = () =>
    Promise.all(
      tables.map(async (table) => (await vault.db.reader.selectFrom(table).select('id').execute()).length),
    );
  const before = await counts();
  const [view] = await preview(vault, { certificate: 'www' });
  assert.deepEqual([view?.hosts, view?.endpoints], [['web1.example.test'], ['127.0.0.1:8443']]);
  assert.deepEqual([view?.api_keys.includes('reader'), view?.api_keys.includes('elsewhere')], [true, false]);
  assert.deepEqual(await counts(), before);
});

test('a preview lists active API keys, also after a hundred revoked or expired ones', async (t) => {
  const { vault, world } = await engine(t, { certificate: null });
  await makeCertificate(vault, 'www');
  while ((await tryWork(vault)) !== undefined);
  for (let n = 0; n < 100; n += 1) await makeKey(vault, { certificates: ['www'] });
  const ended = (column: 'revoked_at' | 'expires_at', parity: number) =>
    vault.db.write((writer) =>
      writer
        .updateTable('api_keys')
        .set({ [column]: world.now() })
        .where(sql<boolean>`id % 2 = ${parity}`)
        .execute(),
    );
  await ended('revoked_at', 0);
  await ended('expires_at', 1);
  await makeKey(vault, { name: 'reader', certificates: ['www'] });
  const [view] = await preview(vault, { certificate: 'www' });
  assert.deepEqual(view?.api_keys, ['reader']);
});

test('a selection of many certificates lets other requests run in between', async (t) => {
  const { vault, world } = await engine(t, { certificate: null });
  await makeCertificate(vault, 'www');
  while ((await tryWork(vault)) !== undefined);
  const { id: original, ...certificate } = await rowOf(vault, 'www');
  await vault.db.write(async (writer) => {
    const { id: _, ...version } = await writer
      .selectFrom('certificate_versions')
      .selectAll()
      .where('certificate_id', '=', original)
      .executeTakeFirstOrThrow();
    for (let n = 0; n < 120; n += 1) {
      const copy = { ...certificate, name: `c${n}` };
      const { id } = await writer
        .insertInto('certificates')
        .values(copy)
        .returning('id')
        .executeTakeFirstOrThrow();
      await writer
        .insertInto('certificate_versions')
        .values({ ...version, certificate_id: id })
        .execute();
    }
  });
  let read = 0;
  const portions: number[] = [];
  const turn = async () => void portions.push(read);
  const watched: Vault = { ...vault, world: Object.assign(Object.create(world), { turn }) };
  const request = replacementRequest(parseInput(replacementInput, { issuer: 'local-ca' }));
  const permits = () => {
    read += 1;
    return false;
  };
  await previewReplacement(watched, request, { permits });
  assert.equal(read, 121);
  assert.deepEqual([portions.includes(50), portions.includes(100)], [true, true], portions.join());
});

test('an endpoint that still serves the old version holds the revocation back', async (t) => {
  const { vault, world } = await variety(t);
  const endpoint = parseInput(createEndpointInput, { address: '127.0.0.1:8443', certificate: 'www' });
  const at = await addEndpoint(vault, localCli, endpoint);
  const serve = (version: number) =>
    vault.db.write((writer) =>
      writer.updateTable('endpoints').set({ version, checked_at: 1 }).where('id', '=', at).execute(),
    );
  await serve(1);
  const id = await replace(vault, { certificate: 'www' });
  await renewed({ vault, world });
  assert.deepEqual(await progressOf(vault, id), ['www: issued 0 of 1']);
  await serve(2);
  world.advance(5000);
  await round(vault);
  assert.deepEqual(await progressOf(vault, id), ['www: revoked 1 of 1, finished']);
  assert.equal((await rowOf(vault, 'www')).current_version, 2);
});
