/** The form gives the same error messages as the API. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CertificateDraft,
  checkCertificate,
  domainsIn,
  zoneOf,
} from '../../../assets/console/certificates/certificate-checks.ts';
import { Problem } from '../../../src/base/problem.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import { refuseUnsuitable } from '../../../src/domain/issuers/issuers.ts';

const good: CertificateDraft = {
  name: 'web',
  domains: ['www.example.com'],
  issuer: 'local-ca',
  fallbackIssuer: '',
  keyType: 'ec256',
  lifetime: '',
  usage: '',
  profile: '',
  challenge: '',
  reusesKey: false,
  csr: '',
  labels: '',
};

/** The API's error messages by path. */
function refusals(draft: CertificateDraft, type: 'acme' | 'local-ca'): Record<string, string> {
  const { keyType, fallbackIssuer: _, reusesKey: __, ...rest } = draft;
  const filled = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== ''));
  try {
    const input = parseInput(createCertificateInput, { name: '', ...filled, key_type: keyType });
    refuseUnsuitable({ name: draft.issuer, type }, input);
    return {};
  } catch (error) {
    assert.ok(error instanceof Problem);
    return Object.fromEntries(error.errors.map(({ path, message }) => [path, message]));
  }
}

const drafts: readonly (readonly [title: string, draft: Partial<CertificateDraft>])[] = [
  ['valid fields', {}],
  ['no name', { name: '' }],
  ['a star as name', { name: '*' }],
  ['a name with a dot in front', { name: '.web' }],
  ['a long name', { name: 'a'.repeat(129) }],
  ['no domains', { domains: [] }],
  ['101 domains', { domains: Array.from({ length: 101 }, (_, index) => `a${index}.example.com`) }],
  ['an underscore', { domains: ['ok.example.com', 'not_ok.example.com'] }],
  ['a wildcard', { domains: ['*.example.com'] }],
  ['a wildcard of a top level domain', { domains: ['*.com'] }],
  ['a star in the middle', { domains: ['www.*.example.com'] }],
  ['an umlaut', { domains: ['bücher.example'] }],
  ['addresses', { domains: ['192.0.2.7', '2001:db8::1'] }],
  ['an invalid address', { domains: ['192.0.2.700'] }],
  ['an address with a leading zero', { domains: ['192.0.2.07'] }],
  ['half an IPv6 address', { domains: ['2001:db8'] }],
  ['a zone index', { domains: ['fe80::1%eth0'] }],
  ['a URL', { domains: ['https://www.example.com/'] }],
  ['a port', { domains: ['www.example.com:443'] }],
  ['a final dot', { domains: ['www.example.com.'] }],
  ['two dots', { domains: ['www..example.com'] }],
  ['a lifetime', { lifetime: '90d' }],
  ['a lifetime in minutes', { lifetime: '30m' }],
  ['a lifetime that is too short', { lifetime: '4m' }],
  ['a lifetime without a unit', { lifetime: '90' }],
  ['a lifetime that is too long', { lifetime: '11y' }],
  ['a profile', { profile: 'shortlived' }],
  ['a profile of two words', { profile: 'short lived' }],
  ['a challenge', { challenge: 'dns-01' }],
  ['a wildcard by http-01', { domains: ['*.example.com'], challenge: 'http-01' }],
  ['a wildcard by dns-01', { domains: ['*.example.com'], challenge: 'dns-01' }],
  ['an address by dns-01', { domains: ['192.0.2.7'], challenge: 'dns-01' }],
  ['Ed25519', { keyType: 'ed25519' }],
];

for (const type of ['local-ca', 'acme'] as const) {
  for (const [title, changes] of drafts)
    test(`form and API give the same errors for a ${type} certificate with ${title}`, () => {
      const draft = { ...good, ...changes };
      assert.deepEqual(checkCertificate(draft, type === 'acme'), refusals(draft, type));
    });
}

test('domains are split at line breaks and commas, without duplicates', () => {
  assert.deepEqual(domainsIn(' a.example,b.example\n\nc.example; a.example '), [
    'a.example',
    'b.example',
    'c.example',
  ]);
});

test('a URL among the domains stands for its host', () => {
  const cases: [string, string[]][] = [
    ['https://www.example.com/login?next=/', ['www.example.com']],
    ['HTTPS://Shop.example.com:8443', ['shop.example.com']],
    ['https://[2001:db8::7]/ www.example.com', ['2001:db8::7', 'www.example.com']],
    ['https://', ['https://']],
    ['www.example.com/login', ['www.example.com/login']],
  ];
  for (const [text, domains] of cases) assert.deepEqual(domainsIn(text), domains);
});

test('the zone of a name is the longest one that contains it', () => {
  const zones = ['example.com', 'sub.example.com', 'ample.com'];
  assert.equal(zoneOf('*.Sub.example.com', zones), 'sub.example.com');
  assert.equal(zoneOf('www.example.com', zones), 'example.com');
  assert.equal(zoneOf('example.org', zones), undefined);
});
