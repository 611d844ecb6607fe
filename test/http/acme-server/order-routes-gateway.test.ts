/**
 * Orders at the directory of an ACME issuer: carried out at that CA with the CSR of the client, by a vault that
 * validates the names with its DNS providers, and limited before the CA has to.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import { renewalInfoId } from '../../../src/acme/renewal-info.ts';
import { hour, minute, second } from '../../../src/base/duration.ts';
import { revokeAcmeClient } from '../../../src/domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { queueDueRenewals } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { AcmeTestClient, assertProblem, csrFor, makeAcmeClient } from '../../harness/acme/server-client.ts';
import { problem, type ScriptedAcmeOptions, scriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { apiChecker } from '../../harness/http/api-checker.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import {
  addMemoryProvider,
  countOf,
  hastyWorld,
  issuedBy,
  memoryZone,
  tryWork,
  withZone,
  workOn,
} from '../../harness/issuance/engine-vault.ts';
import { acmeIssuer, makeCertificate, rowOf } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook, toldIn } from '../../harness/notifications/fixtures.ts';

const www = 'www.example.test';

async function gateway(t: TestContext, options: ScriptedAcmeOptions = {}) {
  const world = hastyWorld();
  const zone = memoryZone();
  const server = await checkedServer(t, { world, inPlaceOf: (vault) => withZone(vault, zone) });
  const vault = withZone(server.vault, zone);
  const ca = await scriptedAcme(t, { now: world.now, ...options });
  await acmeIssuer(vault, 'ca', ca.directoryUrl);
  await addMemoryProvider(vault, zone, 'memory', 'example.test');
  const external = await makeAcmeClient(vault, { issuers: ['ca'] });
  const watch = apiChecker(server.document);
  const client = await AcmeTestClient.registered(server.url, external, { issuer: 'ca', watch });
  /** Orders and finalizes; returns the answer and the URL of the order. */
  const finalize = async (names: readonly string[] = [www], csr?: string) => {
    const ordered = await client.order(names);
    assert.equal(ordered.status, 201, ordered.text);
    const answer = await client.post(ordered.json.finalize, { csr: csr ?? (await csrFor(names)) });
    return { answer, url: ordered.headers.get('Location') ?? '' };
  };
  /** Lets time pass, in which nonces expire. */
  const advance = (ms: number) => {
    world.advance(ms);
    client.nonces.length = 0;
  };
  return { server, vault, world, advance, ca, zone, external, client, finalize, work: () => workOn(vault) };
}

const waitOf = (headers: Headers) => Number(headers.get('Retry-After'));

/** How many orders ended how, in the metrics. */
function countsOf({ meter }: Vault): Record<string, number> {
  const pattern = /^vault_acme_orders_total\{client="client-\w+",issuer="[\w-]+",result="(\w+)"\}$/;
  const counts = Object.entries(meter.series()).map(([name, value]) => [pattern.exec(name)?.[1], value]);
  return Object.fromEntries(counts.filter(([result]) => result !== undefined));
}

test('an order is placed at the CA with the CSR of the client, and the certificate belongs to the client', async (t) => {
  const { server, vault, ca, zone, client, external, finalize, work } = await gateway(t);
  const names = [www, '*.example.test'];
  const csr = await csrFor(names);
  const { answer, url } = await finalize(names, csr);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.status, 'processing');
  assert.equal(waitOf(answer.headers), 3);
  assert.equal(issuedBy(ca), 0);
  assert.equal((await work()).status, 'succeeded');
  const order = await client.post(url);
  assert.equal(order.json.status, 'valid', order.text);
  assert.equal(order.headers.get('Retry-After'), null);
  const { text } = await client.post(order.json.certificate);
  const leaf = new X509Certificate(text);
  assert.match(text, /END CERTIFICATE-----\n-----BEGIN CERTIFICATE/);
  const [upstream] = ca.state.orders.values();
  assert.deepEqual(upstream?.leaf, leaf.raw);
  const spki = leaf.publicKey.export({ type: 'spki', format: 'der' });
  assert(Buffer.from(csr, 'base64url').includes(spki));
  assert.deepEqual([...zone.records], []);
  const row = await rowOf(vault, www);
  assert.deepEqual([row.acme_client_id, row.current_version, row.auto_renew], [external.id, 1, 0]);
  const keys = await vault.db.reader.selectFrom('certificate_versions').select('private_key_etag').execute();
  assert.deepEqual(keys, [{ private_key_etag: '' }]);
  assert.deepEqual(countsOf(vault), { issued: 1 });
  assert.equal(vault.meter.series().vault_acme_order_duration_seconds_count, 1);
  const actor = `acme-client:${external.id}:${external.name}`;
  for (const action of ['renewal.request', 'certificate.issue'])
    assert.deepEqual(
      eventsOf(server.dataDir, action).map((event) => event.actor),
      [actor],
    );
});

suite('an error during an order', () => {
  test('from the CA is passed on with its detail and subproblems, and the certificate gets no error, alert or retry', async (t) => {
    const { vault, ca, client, finalize, work } = await gateway(t);
    await addWebhook(vault, 'http://127.0.0.1:1/');
    const subproblems = [
      {
        type: 'urn:ietf:params:acme:error:caa',
        detail: 'CAA forbids it',
        identifier: { type: 'dns', value: www },
      },
    ];
    ca.override(
      'newOrder',
      problem('rejectedIdentifier', 'We do not issue for this', { members: { subproblems } }),
    );
    const { url } = await finalize();
    assert.equal((await work()).status, 'failed');
    const { json } = await client.post(url);
    assert.equal(json.status, 'invalid');
    assert.equal(json.error.type, 'urn:ietf:params:acme:error:rejectedIdentifier');
    assert.equal(json.error.detail, 'We do not issue for this');
    assert.deepEqual(json.error.subproblems, subproblems);
    const row = await rowOf(vault, www);
    assert.deepEqual([row.last_error, row.next_renewal_at], [null, null]);
    assert.deepEqual(await toldIn(vault), []);
    assert.equal(await queueDueRenewals(vault, 10), 0);
    const { answer } = await finalize();
    assert.equal(answer.json.status, 'processing');
    assert.equal((await work()).status, 'succeeded');
    assert.deepEqual(countsOf(vault), { failed: 1, issued: 1 });
  });

  test('from the CA of type rateLimited rejects new orders until its Retry-After, without a request to the CA', async (t) => {
    const { advance, ca, client, finalize, work } = await gateway(t);
    const limited = problem('rateLimited', 'too many certificates', { headers: { 'Retry-After': '7200' } });
    ca.override('newOrder', limited);
    const { url } = await finalize();
    await work();
    assert.equal((await client.post(url)).json.error.type, 'urn:ietf:params:acme:error:rateLimited');
    const asked = countOf(ca, 'newOrder');
    const refused = await client.order([www]);
    assertProblem(refused, 'rateLimited', 429);
    assert(waitOf(refused.headers) > 7000 && waitOf(refused.headers) <= 7200);
    assert.equal(countOf(ca, 'newOrder'), asked);
    advance(2 * hour);
    assert.equal((await finalize()).answer.json.status, 'processing');
  });

  test('from the vault itself reports the id of the renewal, but not its cause', async (t) => {
    const { zone, client, finalize, work } = await gateway(t);
    zone.failure = 'the password of the provider is wrong';
    const { url } = await finalize();
    const { id } = await work();
    const { error } = (await client.post(url)).json;
    assert.equal(error.type, 'urn:ietf:params:acme:error:serverInternal');
    assert.match(error.detail, new RegExp(`renewal ${id}\\.$`));
    assert.doesNotMatch(error.detail, /password/);
  });
});

test('a client that repeats a failing order waits longer after each failure, without requests to the CA', async (t) => {
  const { advance, ca, client, finalize, work } = await gateway(t);
  const release = ca.overrideAll('newOrder', problem('rejectedIdentifier', 'no'));
  const waits: number[] = [];
  for (let failures = 1; failures <= 5; failures += 1) {
    await finalize();
    await work();
    const refused = await client.order([www]);
    if (refused.status === 201) {
      waits.push(0);
      continue;
    }
    assert.match(assertProblem(refused, 'rateLimited', 429), /orders for these names failed/);
    waits.push(waitOf(refused.headers));
    advance(waitOf(refused.headers) * second);
  }
  assert.equal(countOf(ca, 'newOrder'), 5);
  // A second or less passes while the vault works.
  assert.deepEqual(
    waits.map((wait) => Math.ceil(wait / 10) * 10),
    [0, 60, 600, 3600, 3600],
  );
  release();
  await finalize();
  assert.equal((await work()).status, 'succeeded');
  assert.equal((await client.order([www])).status, 201);
});

suite('concurrent orders for the same names', () => {
  test('share one order at the CA and its certificate if they have the same CSR', async (t) => {
    const { ca, client, finalize, work } = await gateway(t);
    const csr = await csrFor([www]);
    const orders = [await finalize([www], csr), await finalize([www], csr)];
    assert.deepEqual(
      orders.map(({ answer }) => answer.json.status),
      ['processing', 'processing'],
    );
    await work();
    assert.equal(issuedBy(ca), 1);
    const urls = new Set<string>();
    for (const { url } of orders) urls.add((await client.post(url)).json.certificate);
    assert.equal(urls.size, 1);
  });

  test('are rejected with 429 if their CSR, profile or client differs, or if the vault itself orders', async (t) => {
    const { server, vault, client, finalize, work } = await gateway(t);
    const csr = await csrFor([www]);
    await finalize([www], csr);
    const { answer } = await finalize();
    assert.match(assertProblem(answer, 'rateLimited', 429), /Another order for the same names is under way/);
    assert.equal(waitOf(answer.headers), 30);
    const other = await makeAcmeClient(vault, { issuers: ['ca'] });
    const stranger = await AcmeTestClient.registered(server.url, other, { issuer: 'ca' });
    const ordered = await stranger.order([www]);
    const withProfile = await client.order([www], { profile: 'short' });
    assertProblem(await client.post(withProfile.json.finalize, { csr }), 'rateLimited', 429);
    assertProblem(await stranger.post(ordered.json.finalize, { csr }), 'rateLimited', 429);
    await work();
    assert.equal((await stranger.post(ordered.json.finalize, { csr })).json.status, 'processing');
    await work();
    assert.equal((await stranger.post(ordered.headers.get('Location') ?? '')).json.status, 'valid');
    await makeCertificate(vault, 'own', { issuer: 'ca', domains: ['own.example.test'] });
    assertProblem((await finalize(['own.example.test'])).answer, 'rateLimited', 429);
    assert.equal((await client.order(['other.example.test'])).status, 201);
  });
});

test('while the CA is paused no order is accepted', async (t) => {
  const { vault, world, client } = await gateway(t);
  const changes = { paused_until: world.now() + 10 * minute, pause_reason: 'busy' };
  await vault.db.write((writer) => writer.updateTable('acme_issuers').set(changes).execute());
  const refused = await client.order([www]);
  assert.match(assertProblem(refused, 'rateLimited', 429), /The CA asked the vault to wait: busy/);
  assert.equal(waitOf(refused.headers), 600);
});

test('orders with dates, or with names without a DNS provider, are rejected without a request to the CA', async (t) => {
  const { server, vault, ca, client } = await gateway(t);
  const dates = { notAfter: '2026-12-01T00:00:00Z' };
  assert.match(assertProblem(await client.order([www], dates), 'malformed', 400), /The CA chooses/);
  const external = await makeAcmeClient(vault, { issuers: ['ca'], domains: ['*.elsewhere.test'] });
  const other = await AcmeTestClient.registered(server.url, external, { issuer: 'ca' });
  const refused = await other.order(['*.elsewhere.test']);
  assert.match(assertProblem(refused, 'rejectedIdentifier', 400), /no DNS provider has a zone/i);
  assertProblem(await client.order(['www.elsewhere.test']), 'rejectedIdentifier', 400);
  assert.equal(countOf(ca, 'newOrder'), 0);
});

test('an order interrupted by a shutdown is continued at the CA by the next worker', async (t) => {
  const { vault, advance, ca, client, finalize } = await gateway(t);
  const { url } = await finalize();
  const stop = new AbortController();
  ca.override('finalize', async (_, usual) => {
    stop.abort('shutdown');
    return usual();
  });
  await tryWork(vault, stop.signal);
  assert.equal((await client.post(url)).json.status, 'processing');
  advance(2 * minute);
  assert.equal((await workOn(vault)).status, 'succeeded');
  assert.equal(countOf(ca, 'newOrder'), 1);
  assert.equal((await client.post(url)).json.status, 'valid');
});

test('a pending order fails without a request to the CA after its client was revoked', async (t) => {
  const { vault, ca, external, finalize, work } = await gateway(t);
  await finalize();
  await revokeAcmeClient(vault, localCli, external.id);
  assert.equal((await work()).status, 'failed');
  assert.equal(countOf(ca, 'newOrder'), 0);
  const orders = await vault.db.reader.selectFrom('acme_client_orders').select(['status', 'error']).execute();
  assert.equal(orders[0]?.status, 'invalid');
  assert.match(orders[0]?.error ?? '', /its ACME client was revoked/);
  const rows = await vault.db.reader.selectFrom('renewals').select('status').execute();
  assert.deepEqual(rows, [{ status: 'failed' }]);
});

test('an order whose certificate an administrator deletes is invalid', async (t) => {
  const { vault, client, finalize } = await gateway(t);
  const { url } = await finalize();
  await deleteCertificate(vault, localCli, www, { force: false });
  const { json } = await client.post(url);
  assert.equal(json.status, 'invalid');
  assert.match(json.error.detail, /the certificate was deleted/);
});

test('the renewal window of the CA is passed on, cached, and kept when the CA fails', async (t) => {
  const { server, ca, client, advance, finalize, work } = await gateway(t);
  const { url } = await finalize();
  await work();
  const { certificate } = (await client.post(url)).json;
  const { text } = await client.post(certificate);
  const id = renewalInfoId(new X509Certificate(text).raw);
  const suggestedWindow = { start: '2026-12-24T00:00:00Z', end: '2026-12-25T00:00:00Z' };
  ca.override('renewalInfo', { body: { suggestedWindow }, headers: { 'Retry-After': '21600' } });
  const ask = async () => {
    const answer = await server.get(`/acme/ca/renewal-info/${id}`);
    return ((await answer.json()) as { suggestedWindow: object }).suggestedWindow;
  };
  assert.deepEqual(await ask(), suggestedWindow);
  assert.deepEqual(await ask(), suggestedWindow);
  assert.equal(countOf(ca, 'renewalInfo'), 1);
  advance(6 * hour);
  ca.override('renewalInfo', problem('serverInternal', 'broken', { status: 503 }));
  assert.deepEqual(await ask(), suggestedWindow);
  assert.deepEqual(await ask(), suggestedWindow);
  assert.equal(countOf(ca, 'renewalInfo'), 2);
});

test('a client revokes its certificate at the CA, whose error is passed on', async (t) => {
  const { server, vault, ca, client, external, finalize, work } = await gateway(t);
  const { url } = await finalize();
  await work();
  const { text } = await client.post((await client.post(url)).json.certificate);
  const certificate = new X509Certificate(text).raw.toString('base64url');
  ca.override('revokeCert', problem('unauthorized', 'not with this account'));
  const refused = await client.post(client.directory.revokeCert, { certificate, reason: 4 });
  assert.match(assertProblem(refused, 'unauthorized', 403), /not with this account/);
  const revoked = await client.post(client.directory.revokeCert, { certificate, reason: 4 });
  assert.equal(revoked.status, 200, revoked.text);
  assert.deepEqual((await rowOf(vault, www)).next_renewal_at, null);
  const [event] = eventsOf(server.dataDir, 'certificate.revoke');
  assert.equal(event?.actor, `acme-client:${external.id}:${external.name}`);
  assertProblem(await client.post(client.directory.revokeCert, { certificate }), 'alreadyRevoked', 400);
  assert.deepEqual(await vault.db.reader.selectFrom('renewals').select('status').execute(), [
    { status: 'succeeded' },
  ]);
});
