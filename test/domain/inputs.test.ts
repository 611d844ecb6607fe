/** Inputs: what is asked for becomes brands and defaults, or is refused with a sentence for every part. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour } from '../../src/base/duration.ts';
import { Problem } from '../../src/base/problem.ts';
import { createApiKeyInput, createCertificateInput, parseInput } from '../../src/domain/inputs.ts';

const certificate = { name: 'www', domains: ['www.example.com'] };
const apiKey = { name: 'deploy', scopes: ['certificates:read'], certificates: ['www'] };

/** The refused parts, `path: message`. */
function refusals(work: () => unknown): string[] {
  try {
    work();
  } catch (error) {
    assert(error instanceof Problem && error.code === 'invalid_request', String(error));
    const { path = '', message = '' } = error.errors[0] ?? {};
    const isSentence = path !== '' && message.startsWith(`${path} `);
    assert.equal(error.message, `${isSentence ? '' : `${path || 'Input'}: `}${message}.`);
    return error.errors.map(({ path, message }) => `${path}: ${message}`);
  }
  return [];
}

test('a certificate needs a name and domains; the rest has defaults, and a CSR or the vault chooses the type of the key', () => {
  assert.deepEqual(parseInput(createCertificateInput, certificate), {
    ...certificate,
    issuer: 'local-ca',
    reuse_key: false,
  });
});

test('domains are normalised and each is there once, in the order given', () => {
  const domains = ['B.example.', 'a.example', 'b.example', '2001:DB8:0::1', '*.MÜNCHEN.example'];
  assert.deepEqual(parseInput(createCertificateInput, { ...certificate, domains }).domains, [
    'b.example',
    'a.example',
    '2001:db8::1',
    '*.xn--mnchen-3ya.example',
  ]);
});

for (const [text, ms] of [
  ['1h', hour],
  ['160h', 160 * hour],
  ['3650d', 3650 * day],
  ['10y', 3650 * day],
] as const) {
  test(`a lifetime of ${text} can be requested`, () => {
    assert.equal(parseInput(createCertificateInput, { ...certificate, lifetime: text }).lifetime, ms);
  });
}

const certificateRule = 'is not a name: a certificate name has 1 to 128 letters';
const lifetimeRule = 'is not a lifetime: write a number and m, h, d or y, from 5m to 3650d, such as 90d';

const refusedCertificates: readonly (readonly [what: string, change: object, refusal: string])[] = [
  ['a bad name', { name: 'a b' }, `name: "a b" ${certificateRule}`],
  ['a name that is a star', { name: '*' }, `name: "*" ${certificateRule}`],
  ['no name', { name: undefined }, 'name: name is missing'],
  ['no domain', { domains: [] }, 'domains: at least one domain is required'],
  [
    '101 domains',
    { domains: Array(101).fill('a.example') },
    'domains: a certificate has at most 100 domains',
  ],
  [
    'a bad domain',
    { domains: ['ok.example', 'a_b'] },
    'domains.1: "a_b" is not a domain: a domain is a DNS name',
  ],
  ['domains that are no list', { domains: 'a.example' }, 'domains: domains must be a list'],
  [
    'an unknown key type',
    { key_type: 'rsa1024' },
    'key_type: "rsa1024" is not a key type: use one of ec256, ec384',
  ],
  ['a lifetime of four minutes', { lifetime: '4m' }, `lifetime: "4m" ${lifetimeRule}`],
  ['a lifetime that is too long', { lifetime: '3651d' }, `lifetime: "3651d" ${lifetimeRule}`],
  ['a lifetime that is a number', { lifetime: 90 }, 'lifetime: lifetime must be a string'],
  ['a truth that is a text', { reuse_key: 'yes' }, 'reuse_key: reuse_key must be true or false'],
  ['something unknown', { colour: 'red' }, ': unknown field "colour"'],
  ['a secret in the place of a name', { ['s'.repeat(32)]: 1 }, ': unknown field (not a name)'],
];

for (const [what, change, refusal] of refusedCertificates) {
  test(`a certificate with ${what} is refused by the part`, () => {
    const [first, ...others] = refusals(() =>
      parseInput(createCertificateInput, { ...certificate, ...change }),
    );
    assert(first?.startsWith(refusal), String(first));
    assert.deepEqual(others, []);
  });
}

test('a value of another type is refused with a sentence about the field', () => {
  assert.throws(
    () => parseInput(createCertificateInput, { ...certificate, lifetime: 90 }),
    (error: Problem) => error.message === 'lifetime must be a string.',
  );
});

test('scopes come out in their order and once, names once, and a star means any certificate', () => {
  const scopes = ['renewals:trigger', 'certificates:read', 'renewals:trigger'];
  const asked = parseInput(createApiKeyInput, { ...apiKey, scopes, certificates: ['b', 'a', 'b'] });
  assert.deepEqual(asked.scopes, ['certificates:read', 'renewals:trigger']);
  assert.deepEqual(asked.certificates, ['b', 'a']);
  assert.equal(parseInput(createApiKeyInput, { ...apiKey, certificates: ['a', '*'] }).certificates, 'any');
});

test('a name of a key is trimmed and may have any script', () => {
  assert.equal(parseInput(createApiKeyInput, { ...apiKey, name: ' Büro 東京 ' }).name, 'Büro 東京');
});

test('an expiry is a moment', () => {
  const { expires_at } = parseInput(createApiKeyInput, {
    ...apiKey,
    expires_at: '2030-01-31T01:00:00+01:00',
  });
  assert.equal(expires_at, Date.parse('2030-01-31T00:00:00Z'));
});

const scopeRule = 'use one of certificates:read, private_keys:read, renewals:trigger, certificates:sign';

const refusedKeys: readonly (readonly [what: string, change: object, refusal: string])[] = [
  ['no name', { name: ' ' }, 'name: name is missing'],
  ['a name of 129 characters', { name: 'x'.repeat(129) }, 'name: a name has at most 128 characters'],
  ['a line break in its name', { name: 'a\nb' }, 'name: a name must not contain control characters'],
  ['an escape in its name', { name: 'a\u001b[2Jb' }, 'name: a name must not contain control characters'],
  ['no scope', { scopes: [] }, 'scopes: at least one scope is required'],
  ['an unknown scope', { scopes: ['admin'] }, `scopes.0: "admin" is not a scope: ${scopeRule}`],
  [
    'a scope in another case',
    { scopes: ['Certificates:Read'] },
    'scopes.0: "Certificates:Read" is not a scope',
  ],
  ['no certificate', { certificates: [] }, 'certificates: at least one certificate name is required, or "*"'],
  ['a bad certificate name', { certificates: ['a/b'] }, `certificates.0: "a/b" ${certificateRule}`],
  [
    'a bad expiry',
    { expires_at: '2030-02-30' },
    'expires_at: "2030-02-30" is not an RFC 3339 timestamp such as',
  ],
  ['an identity of its own', { id: 1 }, ': unknown field "id"'],
];

for (const [what, change, refusal] of refusedKeys) {
  test(`an API key with ${what} is refused by the part`, () => {
    const [first, ...others] = refusals(() => parseInput(createApiKeyInput, { ...apiKey, ...change }));
    assert(first?.startsWith(refusal), String(first));
    assert.deepEqual(others, []);
  });
}

test('every refused part is named, and the first one is the sentence', () => {
  const all = refusals(() => parseInput(createApiKeyInput, { name: '', scopes: ['x'], certificates: [] }));
  assert.deepEqual(
    all.map((refusal) => refusal.split(':')[0]),
    ['name', 'scopes.0', 'certificates'],
  );
});

for (const value of [null, undefined, 'text', 7, []]) {
  test(`${JSON.stringify(value)} instead of an object is refused`, () => {
    assert.match(
      refusals(() => parseInput(createApiKeyInput, value))[0] ?? '',
      /^: the input (is missing|must be an object)/,
    );
  });
}

test('a long text is cut in the sentence that refuses it', () => {
  const [refusal] = refusals(() =>
    parseInput(createCertificateInput, { ...certificate, name: 'x'.repeat(5000) }),
  );
  assert((refusal ?? '').length < 300);
});
