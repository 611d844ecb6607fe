/** Which names are checked on port 80, and what each answer means. A function answers in place of port 80. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reachabilityFindings } from '../../../src/domain/doctor/reachability-findings.ts';
import { type Outbound, OutboundError, type OutboundResponse } from '../../../src/net/outbound-http.ts';
import { change, forever, makeCertificate, silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const answers: readonly {
  readonly what: string;
  readonly answer: Partial<OutboundResponse> | OutboundError;
  readonly status: string;
  readonly message: RegExp;
}[] = [
  {
    what: "a vault's 404 response",
    answer: {
      status: 404,
      headers: { 'content-type': 'application/problem+json' },
      body: Buffer.from('{"code":"not_found"}'),
    },
    status: 'ok',
    message: /: port 80 leads to a vault$/,
  },
  {
    what: "another server's 404 response",
    answer: { status: 404, headers: { 'content-type': 'text/html' }, body: Buffer.from('<h1>not found') },
    status: 'warning',
    message: /: port 80 does not lead to a vault \(status 404\)$/,
  },
  {
    what: 'a 404 response with invalid problem+json',
    answer: { status: 404, headers: { 'content-type': 'application/problem+json' }, body: Buffer.from('{') },
    status: 'warning',
    message: /: port 80 does not lead to a vault/,
  },
  {
    what: 'a redirect',
    answer: { status: 301, headers: { location: 'https://www.example.com/' } },
    status: 'warning',
    message: /: port 80 redirects elsewhere/,
  },
  {
    what: 'an unreachable server',
    answer: new OutboundError('unreachable', 'web.example.test cannot be reached: connect ECONNREFUSED'),
    status: 'warning',
    message: /^web\.example\.test: web\.example\.test cannot be reached/,
  },
];

for (const { what, answer, status, message } of answers) {
  test(`${what} on port 80 is reported as ${status}`, async (t) => {
    const { vault } = await testVault(t);
    await silentIssuer(vault, 'ca');
    await makeCertificate(vault, 'web', { issuer: 'ca' });
    const [finding, ...more] = await reachabilityFindings(vault, outboundThat(answer), forever);
    assert.deepEqual([finding?.status, finding?.about, more], [status, 'web.example.test', []]);
    assert.match(finding?.message ?? '', message);
    assert.equal(finding?.hint === undefined, status === 'ok');
  });
}

test('only names that use http-01 are checked, and no more than ten', async (t) => {
  const { vault } = await testVault(t);
  await silentIssuer(vault, 'ca');
  await makeCertificate(vault, 'private');
  await makeCertificate(vault, 'dns', { issuer: 'ca', challenge: 'dns-01' });
  await makeCertificate(vault, 'off', { issuer: 'ca' });
  await change(vault, 'off', { disabled_at: 1 });
  const asked: string[] = [];
  const none = await reachabilityFindings(vault, outboundThat({ status: 200 }, asked), forever);
  assert.deepEqual(
    none.map(({ status, message }) => [status, message]),
    [['ok', 'no certificate uses http-01']],
  );
  for (let n = 0; n < 12; n++)
    await makeCertificate(vault, `web${n}`, { issuer: 'ca', challenge: 'http-01' });
  const findings = await reachabilityFindings(vault, outboundThat({ status: 200 }, asked), forever);
  assert.equal(asked.length, 10);
  assert.match(asked[0] ?? '', /^http:\/\/web0\.example\.test\/\.well-known\/acme-challenge\/[\w-]+$/);
  assert.match(findings.at(-1)?.message ?? '', /^2 more names use http-01/);
});

function outboundThat(answer: Partial<OutboundResponse> | OutboundError, asked: string[] = []): Outbound {
  return async ({ url }) => {
    asked.push(url);
    if (answer instanceof OutboundError) throw answer;
    return { status: 200, headers: {}, body: Buffer.alloc(0), ...answer };
  };
}
