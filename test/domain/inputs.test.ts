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

test('a certificate with only a name and domains gets the default issuer and reuse_key, and no key_type', () => {
  assert.deepEqual(parseInput(createCertificateInput, certificate), {
    ...certificate,
    issuer: 'local-ca',
    reuse_key: false,
  });
});

test('domains are normalized and deduplicated in the given order', () => {
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
  ['an invalid name', { name: 'a b' }, `name: "a b" ${certificateRule}`],
  ['a wildcard as its name', { name: '*' }, `name: "*" ${certificateRule}`],
  ['no name', { name: undefined }, 'name: name is missing'],
  ['no domain', { domains: [] }, 'domains: at least one domain is required'],
  [
    '101 domains',
    { domains: Array(101).fill('a.example') },
    'domains: a certificate has at most 100 domains',
  ],
  [
    'an invalid domain',
    { domains: ['ok.example', 'a_b'] },
    'domains.1: "a_b" is not a domain: a domain is a DNS name',
  ],
  ['domains that are not a list', { domains: 'a.example' }, 'domains: domains must be a list'],
  [
    'an unknown key type',
    { key_type: 'rsa1024' },
    'key_type: "rsa1024" is not a key type: use one of ec256, ec384',
  ],
  ['a lifetime of four minutes', { lifetime: '4m' }, `lifetime: "4m" ${lifetimeRule}`],
  ['a lifetime that is too long', { lifetime: '3651d' }, `lifetime: "3651d" ${lifetimeRule}`],
  ['a lifetime that is a number', { lifetime: 90 }, 'lifetime: lifetime must be a string'],
  ['a string as reuse_key', { reuse_key: 'yes' }, 'reuse_key: reuse_key must be true or false'],
  ['an unknown field', { colour: 'red' }, ': unknown field "colour"'],
  ['an unknown field that may be a secret', { ['s'.repeat(32)]: 1 }, ': unknown field (not a name)'],
];

for (const [what, change, refusal] of refusedCertificates) {
  test(`a certificate with ${what} is rejected with a single error`, () => {
    const [first, ...others] = refusals(() =>
      parseInput(createCertificateInput, { ...certificate, ...change }),
    );
    assert(first?.startsWith(refusal), String(first));
    assert.deepEqual(others, []);
  });
}

test('a value of the wrong type is rejected with a message about the field', () => {
  assert.throws(
    () => parseInput(createCertificateInput, { ...certificate, lifetime: 90 }),
    (error: Problem) => error.message === 'lifetime must be a string.',
  );
});

test('scopes are sorted and deduplicated, certificate names are deduplicated, and * means any certificate', () => {
  const scopes = ['renewals:trigger', 'certificates:read', 'renewals:trigger'];
  const asked = parseInput(createApiKeyInput, { ...apiKey, scopes, certificates: ['b', 'a', 'b'] });
  assert.deepEqual(asked.scopes, ['certificates:read', 'renewals:trigger']);
  assert.deepEqual(asked.certificates, ['b', 'a']);
  assert.equal(parseInput(createApiKeyInput, { ...apiKey, certificates: ['a', '*'] }).certificates, 'any');
});

test('an API key name is trimmed and may contain non-Latin characters', () => {
  assert.equal(parseInput(createApiKeyInput, { ...apiKey, name: ' Büro 東京 ' }).name, 'Büro 東京');
});

test('expires_at is parsed with its UTC offset', () => {
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
  [
    'an escape sequence in its name',
    { name: 'a\u001b[2Jb' },
    'name: a name must not contain control characters',
  ],
  ['no scope', { scopes: [] }, 'scopes: at least one scope is required'],
  ['an unknown scope', { scopes: ['admin'] }, `scopes.0: "admin" is not a scope: ${scopeRule}`],
  ['a capitalized scope', { scopes: ['Certificates:Read'] }, 'scopes.0: "Certificates:Read" is not a scope'],
  [
    'no certificate',
    { certificates: [] },
    'certificates: at least one certificate name or label is required',
  ],
  ['an invalid certificate name', { certificates: ['a/b'] }, `certificates.0: "a/b" ${certificateRule}`],
  [
    'an invalid expiry',
    { expires_at: '2030-02-30' },
    'expires_at: "2030-02-30" is not an RFC 3339 timestamp such as',
  ],
  ['an id field', { id: 1 }, ': unknown field "id"'],
];

for (const [what, change, refusal] of refusedKeys) {
  test(`an API key with ${what} is rejected with a single error`, () => {
    const [first, ...others] = refusals(() => parseInput(createApiKeyInput, { ...apiKey, ...change }));
    assert(first?.startsWith(refusal), String(first));
    assert.deepEqual(others, []);
  });
}

test('all invalid fields are listed, and the message is the first error', () => {
  const all = refusals(() => parseInput(createApiKeyInput, { name: '', scopes: ['x'], certificates: [] }));
  assert.deepEqual(
    all.map((refusal) => refusal.split(':')[0]),
    ['name', 'scopes.0', 'certificates'],
  );
});

for (const value of [null, undefined, 'text', 7, []]) {
  test(`${JSON.stringify(value)} instead of an object is rejected`, () => {
    assert.match(
      refusals(() => parseInput(createApiKeyInput, value))[0] ?? '',
      /^: the input (is missing|must be an object)/,
    );
  });
}

test('the error about a 5000-character name is shorter than 300 characters', () => {
  const [refusal] = refusals(() =>
    parseInput(createCertificateInput, { ...certificate, name: 'x'.repeat(5000) }),
  );
  assert((refusal ?? '').length < 300);
});
