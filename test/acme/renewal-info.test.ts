/** Renewal information: the certificate's name in it, and the windows that CAs give. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { downloadCertificate } from '../../src/acme/issued-certificate.ts';
import { fetchRenewalInfo, renewalInfoId } from '../../src/acme/renewal-info.ts';
import { hour, minute } from '../../src/base/duration.ts';
import { readPemBlocks } from '../../src/crypto/pem.ts';
import { makeChain } from '../harness/ca/private-chain.ts';
import { problem, type ScriptedReply, scriptedAcme } from '../harness/ca/scripted-acme.ts';
import {
  clientOf,
  forever,
  isAcmeError,
  issuedOrder,
  registered,
} from '../harness/ca/scripted-acme-fixtures.ts';

/** RFC 9773, Appendix A. */
const example = `-----BEGIN CERTIFICATE-----
MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt
cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS
BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu
7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf
qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B
yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb
+FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK
-----END CERTIFICATE-----`;

const id = 'aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE';
const json = { 'Content-Type': 'application/json' };

test('renewalInfoId returns the ID from RFC 9773 for its example certificate', () => {
  const [block] = readPemBlocks(example);
  assert(block);
  assert.equal(renewalInfoId(block.der), id);
});

test('renewalInfoId returns undefined without an AKI extension and for invalid DER', async () => {
  const { root } = await makeChain();
  assert.equal(renewalInfoId(root.certificate), undefined);
  assert.equal(renewalInfoId(Buffer.from('no certificate')), undefined);
});

test('fetchRenewalInfo returns the window and Retry-After of an issued certificate', async (t) => {
  const lifetime = 6 * 24 * hour;
  const { ca, client, account } = await registered(t, { lifetime });
  const { url, wanted } = await issuedOrder(client, account, 'example.com');
  const { leaf } = await downloadCertificate(client, account, url, wanted, forever);
  const own = renewalInfoId(leaf) ?? '';
  const usual = await fetchRenewalInfo(client, own, forever);
  assert.equal((usual?.windowEnd ?? 0) - (usual?.windowStart ?? 0), lifetime / 6);
  assert.equal(usual?.retryAfterMs, 6 * hour);
  ca.state.renewalWindows.set(own, { start: '2020-01-01T00:00:00Z', end: '2020-01-02T01:00:00+01:00' });
  assert.deepEqual(await fetchRenewalInfo(client, own, forever), {
    windowStart: Date.UTC(2020, 0, 1),
    windowEnd: Date.UTC(2020, 0, 2),
    explanationUrl: undefined,
    retryAfterMs: 6 * hour,
  });
  const asked = ca.requests.at(-1);
  assert.equal(asked?.method, 'GET');
  assert.equal(asked?.path, `/renewal-info/${own}`);
});

test('fetchRenewalInfo returns undefined and sends no renewalInfo request if the CA does not support it', async (t) => {
  const ca = await scriptedAcme(t, { renewalInfo: false });
  assert.equal(await fetchRenewalInfo(clientOf(ca), id, forever), undefined);
  assert.deepEqual(ca.kinds(), ['directory']);
});

test('fetchRenewalInfo limits Retry-After to between one minute and one day, and defaults to six hours', async (t) => {
  const ca = await scriptedAcme(t);
  const body = {
    suggestedWindow: { start: '2026-12-01T00:00:00Z', end: '2026-12-02T00:00:00Z' },
    explanationURL: 'https://ca.test/why',
  };
  const cases: readonly [string | undefined, number][] = [
    [undefined, 6 * hour],
    ['never', 6 * hour],
    ['0', minute],
    ['59', minute],
    ['3600', hour],
    ['86401', 24 * hour],
    ['Thu, 01 Jan 2099 00:00:00 GMT', 24 * hour],
  ];
  for (const [value, expected] of cases) {
    const headers: Record<string, string> = value === undefined ? {} : { 'Retry-After': value };
    ca.override('renewalInfo', { body, headers });
    const info = await fetchRenewalInfo(clientOf(ca), id, forever);
    assert.equal(info?.retryAfterMs, expected, String(value));
    assert.equal(info?.explanationUrl, 'https://ca.test/why');
  }
});

test('fetchRenewalInfo rejects invalid windows, malformed responses and error responses', async (t) => {
  const ca = await scriptedAcme(t);
  const windows: readonly (readonly [string, string])[] = [
    ['2026-12-01T00:00:00Z', '2026-12-01T00:00:00Z'],
    ['2026-12-02T00:00:00Z', '2026-12-01T00:00:00Z'],
    ['soon', '2026-12-01T00:00:00Z'],
    ['2026-12-01T00:00:00Z', '2026-13-01T00:00:00Z'],
    ['2026-12-01', '2026-12-03'],
  ];
  for (const [start, end] of windows) {
    ca.override('renewalInfo', { body: { suggestedWindow: { start, end } } });
    await assert.rejects(
      fetchRenewalInfo(clientOf(ca), id, forever),
      isAcmeError('protocol', /an invalid window from/),
    );
  }
  const answers: readonly ScriptedReply[] = [
    { body: {} },
    { body: { suggestedWindow: {} } },
    { body: 'x', headers: json },
  ];
  for (const answer of answers) {
    ca.override('renewalInfo', answer);
    await assert.rejects(fetchRenewalInfo(clientOf(ca), id, forever), isAcmeError('protocol'));
  }
  ca.override('renewalInfo', problem('malformed', 'no such certificate', { status: 404 }));
  await assert.rejects(
    fetchRenewalInfo(clientOf(ca), id, forever),
    isAcmeError('problem', /^no such certificate$/),
  );
});

test('fetchRenewalInfo adds no second slash to a renewalInfo URL that ends with one', async (t) => {
  const ca = await scriptedAcme(t);
  ca.override('directory', async (_, usual) => ({
    body: { ...((await usual()).body as object), renewalInfo: `${ca.origin}/renewal-info/` },
  }));
  await assert.rejects(fetchRenewalInfo(clientOf(ca), id, forever), isAcmeError('problem'));
  assert.equal(ca.requests.at(-1)?.path, `/renewal-info/${id}`);
});
