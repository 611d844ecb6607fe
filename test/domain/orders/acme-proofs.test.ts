/** Which challenge is answered: by what the certificate wishes, what is configured, and what the CA offers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AcmeAuthorization, AcmeChallenge } from '../../../src/acme/acme-types.ts';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { chooseProof } from '../../../src/domain/orders/acme-proofs.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { engine } from '../../harness/issuance/engine-vault.ts';
import { forever, rowOf } from '../../harness/issuance/renewal-fixtures.ts';

const usual = ['http-01', 'dns-01', 'tls-alpn-01'];

type Case = {
  readonly name: string;
  readonly wish?: string;
  readonly offered?: readonly string[];
  readonly zones?: readonly string[];
  readonly drafts?: boolean;
  /** The chosen type, or what is complained of. */
  readonly outcome: string | RegExp;
};

const cases: readonly Case[] = [
  { name: 'www.example.test', outcome: 'http-01' },
  { name: 'www.example.test', offered: ['dns-01', 'tls-alpn-01'], outcome: 'tls-alpn-01' },
  { name: 'www.example.test', zones: ['example.test'], outcome: 'dns-01' },
  { name: 'www.example.test', zones: ['example.test'], offered: ['http-01'], outcome: 'http-01' },
  { name: 'www.other.test', zones: ['example.test'], outcome: 'http-01' },
  { name: 'www.badexample.test', zones: ['example.test'], outcome: 'http-01' },
  { name: '*.example.test', zones: ['example.test'], outcome: 'dns-01' },
  {
    name: '*.example.test',
    outcome: /^no DNS provider has a zone for \*\.example\.test, which requires dns-01$/,
  },
  {
    name: '*.example.test',
    zones: ['example.test'],
    offered: ['http-01'],
    outcome: /the CA offers http-01, but the certificate needs dns-01$/,
  },
  { name: '192.0.2.1', zones: ['example.test'], outcome: 'http-01' },
  { name: '192.0.2.1', offered: ['tls-alpn-01'], outcome: 'tls-alpn-01' },
  {
    name: '192.0.2.1',
    offered: [],
    outcome:
      /no usable challenge for 192\.0\.2\.1: the CA offers none, but the certificate needs http-01 or tls-alpn-01$/,
  },
  { name: 'www.example.test', wish: 'http-01', zones: ['example.test'], outcome: 'http-01' },
  { name: 'www.example.test', wish: 'tls-alpn-01', outcome: 'tls-alpn-01' },
  {
    name: 'www.example.test',
    wish: 'tls-alpn-01',
    offered: ['http-01'],
    outcome: /the CA offers http-01, but the certificate needs tls-alpn-01$/,
  },
  { name: 'www.example.test', wish: 'dns-01', outcome: /^no DNS provider has a zone for www\.example\.test/ },
  { name: 'www.example.test', wish: 'dns-01', zones: ['example.test'], outcome: 'dns-01' },
  {
    name: 'www.example.test',
    offered: ['dns-persist-01'],
    drafts: true,
    outcome: /the CA offers dns-persist-01/,
  },
  {
    name: 'www.example.test',
    wish: 'dns-persist-01',
    offered: ['dns-persist-01'],
    outcome: /^dns-persist-01 is still a draft$/,
  },
  {
    name: 'www.example.test',
    wish: 'dns-persist-01',
    offered: ['dns-persist-01'],
    drafts: true,
    outcome: 'dns-persist-01',
  },
  {
    name: '*.example.test',
    wish: 'dns-persist-01',
    offered: ['dns-persist-01'],
    drafts: true,
    outcome: 'dns-persist-01',
  },
];

function authorizationOf(name: string, types: readonly string[]): AcmeAuthorization {
  const challenges = types.map(
    (type): AcmeChallenge => ({
      ...{ type, url: `https://ca.test/${type}`, status: 'pending', token: 'token', error: undefined },
      ...{ accountUri: undefined, issuerDomainNames: [] },
    }),
  );
  const type = /^[\d.]+$/.test(name) ? 'ip' : 'dns';
  return {
    ...{ url: 'https://ca.test/authorization', status: 'pending', challenges, retryAfterMs: undefined },
    identifier: { type, value: name.replace(/^\*\./, '') },
    wildcard: name.startsWith('*.'),
  };
}

for (const { name, wish, offered = usual, zones = [], drafts = false, outcome } of cases) {
  const circumstances = [
    `offered ${offered.join(', ') || 'nothing'}`,
    wish === undefined ? [] : `requested ${wish}`,
    zones.length === 0 ? [] : `a provider has ${zones.join()}`,
    drafts ? 'drafts are allowed' : [],
  ].flat();
  const what = typeof outcome === 'string' ? `is validated by ${outcome}` : `is rejected: ${outcome.source}`;
  test(`${name} ${what} (${circumstances.join('; ')})`, async (t) => {
    const { vault } = await engine(t, { zones });
    const claimed = await claimRenewal(vault, 'worker');
    assert(claimed);
    const certificate = { ...(await rowOf(vault, 'www')), challenge: wish ?? null };
    const attempt = { ...claimed, certificate, signal: forever, steps: [] };
    const allowing = { ...vault, allowsDrafts: drafts };
    const choosing = chooseProof(allowing, attempt, authorizationOf(name, offered));
    if (typeof outcome !== 'string') return assert.rejects(choosing, { message: outcome });
    const { challenge, place, recordValue } = await choosing;
    assert.equal(challenge.type, outcome);
    assert.equal(place !== undefined, outcome === 'dns-01');
    assert.equal(recordValue('token.thumbprint') !== null, outcome === 'dns-01');
    return undefined;
  });
}

const unanswered = () => Promise.reject(new DnsProviderError('the resolver answered SERVFAIL'));

for (const [name, outcome] of [
  ['intern.corp.test', 'http-01'],
  ['www.example.test', /failed to look up the CNAME of _acme-challenge\.www\.example\.test: .* SERVFAIL$/],
  ['*.corp.test', /failed to look up the CNAME of _acme-challenge\.corp\.test: .* SERVFAIL$/],
] as const) {
  test(`with a failing CNAME lookup, ${name} ${typeof outcome === 'string' ? `is validated by ${outcome}` : 'fails'}`, async (t) => {
    const { vault, zone, log } = await engine(t, { zones: ['example.test'] });
    t.mock.method(zone.resolver, 'cname', unanswered);
    const claimed = await claimRenewal(vault, 'worker');
    assert(claimed);
    const attempt = { ...claimed, certificate: await rowOf(vault, 'www'), signal: forever, steps: [] };
    const choosing = chooseProof(vault, attempt, authorizationOf(name, usual));
    if (typeof outcome !== 'string') return assert.rejects(choosing, { message: outcome });
    assert.equal((await choosing).challenge.type, outcome);
    assert(log.lines.some((line) => line.includes('CNAME lookup failed') && line.includes('SERVFAIL')));
    return undefined;
  });
}
