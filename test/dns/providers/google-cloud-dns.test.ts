/** The provider google-cloud-dns against a server that behaves as its API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodePem } from '../../../src/crypto/pem.ts';
import {
  another,
  bench,
  here,
  providerScenarios,
  record,
  refused,
  startFake,
} from '../../harness/dns/fake-provider-scenarios.ts';
import { dsaBomb } from '../../harness/import-bombs.ts';
import {
  checkedAssertion,
  fakeGoogleCloudDns,
  googleKeyFile,
  googleTokens,
} from './fake-google-cloud-dns.ts';

providerScenarios(fakeGoogleCloudDns);

test('the service account key is exchanged for a token with a valid signed JWT', async () => {
  await using fake = await startFake(fakeGoogleCloudDns);
  const { provider, signal } = bench(fakeGoogleCloudDns, fake);
  await provider.present(record, signal);
  const { body = '' } = fake.requests.find(({ path }) => path === '/token') ?? {};
  const assertion = new URLSearchParams(body).get('assertion') ?? '';
  const { header, payload } = await checkedAssertion(assertion, `${fake.url}/token`);
  assert.deepEqual(header, { alg: 'RS256', typ: 'JWT', kid: 'key-1' });
  const iat = Date.parse('2026-11-21T12:00:00Z') / 1000;
  assert.deepEqual(payload, {
    scope: 'https://www.googleapis.com/auth/ndev.clouddns.readwrite',
    iss: 'vault@project-1.iam.gserviceaccount.com',
    aud: `${fake.url}/token`,
    iat,
    exp: iat + 3600,
  });
});

test('a token is reused until it expires, and replaced if it is rejected', async () => {
  await using fake = await startFake(fakeGoogleCloudDns);
  const { provider, world, signal } = bench(fakeGoogleCloudDns, fake);
  const logins = () => fake.requests.filter(({ path }) => path === '/token').length;
  await provider.present(record, signal);
  await provider.remove(record, signal);
  assert.equal(logins(), 1);
  world.advance(3_540_000);
  await provider.present(record, signal);
  assert.equal(logins(), 2);
  googleTokens.clear();
  await provider.remove(record, signal);
  assert.equal(logins(), 3);
});

test('a concurrent change by another client is preserved', async () => {
  await using fake = await startFake(fakeGoogleCloudDns);
  const { provider, signal } = bench(fakeGoogleCloudDns, fake);
  await provider.present(record, signal);
  fake.meanwhile(() => fake.add(here, 'another-clients'));
  await provider.present(another, signal);
  fake.meanwhile(() => fake.add(here, 'a-third'));
  await provider.remove(record, signal);
  assert.deepEqual(fake.values(here), ['another-clients', another.value, 'a-third']);
});

test('service_account can be JSON text, and project overrides its project_id', async () => {
  await using fake = await startFake(fakeGoogleCloudDns);
  const { made, signal } = bench(fakeGoogleCloudDns, fake);
  const key = { ...googleKeyFile(fake.url), project_id: 'another' };
  await made({ service_account: JSON.stringify(key), project: 'project-1', base_url: fake.url }).present(
    record,
    signal,
  );
  assert.deepEqual(fake.values(here), [record.value]);
});

test('an invalid service account key is rejected without being shown', async () => {
  await using fake = await startFake(fakeGoogleCloudDns);
  const { made, signal } = bench(fakeGoogleCloudDns, fake);
  const key = googleKeyFile(fake.url);
  for (const service_account of [
    '{"private_key":"topsecret"',
    '{}',
    { client_email: 'a' },
    { ...key, private_key: 'topsecret' },
  ]) {
    const { error } = fakeGoogleCloudDns.type.config.safeParse({ service_account });
    assert.match(error?.message ?? '', /key file|PEM private key/);
    assert.doesNotMatch(error?.message ?? '', /topsecret/);
  }
  const { project_id: _, ...homeless } = key;
  assert.throws(() => made({ service_account: homeless }), /project is missing/);
  // OpenSSL would work on the last two for seconds and for days.
  const bombs = [1500, 100_000].map((size) => encodePem('PRIVATE KEY', dsaBomb(size)));
  for (const private_key of [
    '-----BEGIN PRIVATE KEY-----\ntopsecret\n-----END PRIVATE KEY-----\n',
    ...bombs,
  ]) {
    const provider = made({ service_account: { ...key, private_key }, base_url: fake.url });
    const { message } = await refused(provider.present(record, signal));
    assert.match(message, /private_key of the service account must be an RSA key in PKCS#8$/);
  }
});

test('HTTP 403 with rateLimitExceeded is retried after one second', async () => {
  await using fake = await startFake(fakeGoogleCloudDns);
  const { provider, world, signal } = bench(fakeGoogleCloudDns, fake);
  const errors = [{ reason: 'rateLimitExceeded', message: 'Rate Limit Exceeded' }];
  const json = { error: { code: 403, message: 'Rate Limit Exceeded', errors } };
  fake.interrupt({ status: 403, json }, ({ path }) => path.endsWith('/changes'));
  await provider.present(record, signal);
  assert.deepEqual(world.waits, [1000]);
});

test('a batch creates many records in one change, repeated after a conflict, and removes them in another', async () => {
  await using fake = await startFake(fakeGoogleCloudDns);
  const { provider, signal } = bench(fakeGoogleCloudDns, fake);
  const name = (index: number) => `_acme-challenge.n${index}.example.com`;
  const records = [...Array.from({ length: 30 }, (_, index) => ({ ...record, name: name(index) })), another];
  fake.set(name(7), ['another-clients']);
  const changes = () => fake.requests.filter(({ path }) => path.endsWith('/changes')).length;
  await provider.batch?.present(records, signal);
  assert.equal(changes(), 2);
  assert.deepEqual(fake.values(name(7)), ['another-clients', record.value]);
  assert.equal(fake.records.length, 32);
  const before = fake.requests.length;
  await provider.batch?.remove(records, signal);
  assert.deepEqual(
    fake.records.map(({ value }) => value),
    ['another-clients'],
  );
  assert.equal(fake.requests.length, before + 1);
});
