/** dns-01 and CAA as the vault validates them, against name servers that answer, loop or fail. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import { keyAuthorization, validator } from '../../../harness/acme/validation-fixtures.ts';
import type { FakeCaa, FakeRecords } from '../../../harness/dns/fake-dns.ts';

const digest = hash('sha256', keyAuthorization, 'base64url');
const type = 'dns-01';
const place = '_acme-challenge.www.example.test';

suite('a TXT record', () => {
  test('with the digest is accepted among other values and for a wildcard', async (t) => {
    const { validate } = await validator(t, { [`TXT ${place}`]: ['other', digest, ['two ', 'strings']] });
    assert.equal(await validate({ type }), undefined);
    assert.equal(await validate({ type, identifier: '*.www.example.test' }), undefined);
  });

  test('in two strings counts as one value', async (t) => {
    const { validate } = await validator(t, { [`TXT ${place}`]: [[digest.slice(0, 20), digest.slice(20)]] });
    assert.equal(await validate({ type }), undefined);
  });

  test('is found through CNAME records', async (t) => {
    const records: FakeRecords = {
      [`CNAME ${place}`]: ['a.acme.test'],
      'CNAME a.acme.test': ['b.acme.test'],
      'TXT b.acme.test': [digest],
    };
    const { validate } = await validator(t, records);
    assert.equal(await validate({ type }), undefined);
  });

  test('fails with unauthorized if it is missing, also behind a CNAME record', async (t) => {
    const { refused, dns } = await validator(t, {});
    await refused('unauthorized', /^_acme-challenge\.www\.example\.test has no TXT record$/, { type });
    dns.records = { [`CNAME ${place}`]: ['a.acme.test'] };
    await refused(
      'unauthorized',
      /^_acme-challenge\.www\.example\.test, an alias of a\.acme\.test has no TXT record$/,
      { type },
    );
  });

  test('with other values fails and lists the values on one line, shortened', async (t) => {
    const { refused } = await validator(t, { [`TXT ${place}`]: ['one', 'x'.repeat(200), 'a\nb', 'four'] });
    await refused('incorrectResponse', /has the TXT records .* and 1 more instead of [\w-]{43}$/, { type });
    await refused('incorrectResponse', /^[^\n]*$/, { type });
  });

  test('cannot be looked up after SERVFAIL, garbage, a CNAME loop or more than 8 CNAME records', async (t) => {
    const { refused, dns } = await validator(t, {});
    dns.trouble = () => 'SERVFAIL';
    await refused('dns', /query for the TXT of _acme-challenge\.www\.example\.test failed: .* SERVFAIL/, {
      type,
    });
    dns.trouble = () => 'garbage';
    await refused('dns', /failed: 127\.0\.0\.1:\d+ /, { type });
    dns.trouble = () => undefined;
    dns.records = loop(place, 'a.acme.test', place);
    await refused('dns', /form a loop$/, { type });
    dns.records = loop(place, ...Array.from({ length: 9 }, (_, at) => `a${at}.acme.test`));
    await refused('dns', /more than 8 CNAME records$/, { type });
  });
});

/** Aliases from each name to the next; the server of the test follows none, like those of a zone. */
function loop(...names: readonly string[]): FakeRecords {
  const pairs = names.slice(1).map((target, at) => [`CNAME ${names[at]}`, [target]]);
  const texts = names.map((name) => [`TXT ${name}`, []]);
  return Object.fromEntries([...pairs, ...texts]);
}

suite('CAA records', () => {
  const caaIdentities = ['ca.example.test', 'ca2.example.test'];
  const caa = (value: string, tag = 'issue', flags = 0): FakeCaa => ({ flags, tag, value });
  const valid = { [`TXT ${place}`]: [digest] };

  async function checked(t: TestContext, records: FakeRecords, identities = caaIdentities) {
    return validator(t, { ...valid, ...records }, { caaIdentities: identities });
  }

  test('are not looked up when no CAA identity is configured', async (t) => {
    const { validate, dns } = await checked(t, { 'CAA www.example.test': [caa(';')] }, []);
    assert.equal(await validate({ type }), undefined);
    assert.equal(dns.questions.filter(({ type: asked }) => asked === 'CAA').length, 0);
  });

  test('permit a listed CA, and every CA if none exist', async (t) => {
    const { validate, dns } = await checked(t, {});
    assert.equal(await validate({ type }), undefined);
    assert.deepEqual(
      dns.questions.filter(({ type: asked }) => asked === 'CAA').map(({ name }) => name),
      ['www.example.test', 'example.test', 'test'],
    );
    dns.records = { ...valid, 'CAA example.test': [caa('other.test'), caa('CA2.example.test ; x=y')] };
    assert.equal(await validate({ type }), undefined);
  });

  test('of a name replace those of its parents', async (t) => {
    const { validate, refused, dns } = await checked(t, {
      'CAA www.example.test': [caa('ca.example.test')],
      'CAA example.test': [caa(';')],
    });
    assert.equal(await validate({ type }), undefined);
    dns.records = { ...valid, 'CAA example.test': [caa(';')] };
    await refused(
      'caa',
      /^CAA records forbid to issue for www\.example\.test: example\.test permits ";"; this CA is ca\.example\.test or ca2\.example\.test$/,
      { type },
    );
    dns.records = { ...valid, 'CAA test': [caa('mailto:a@b.test', 'iodef')] };
    assert.equal(await validate({ type }), undefined);
  });

  test('with the tag issuewild replace the others for wildcards only', async (t) => {
    const { validate, refused } = await checked(t, {
      'CAA www.example.test': [caa('ca.example.test'), caa(';', 'issuewild')],
    });
    assert.equal(await validate({ type }), undefined);
    await refused('caa', /permits ";"/, { type, identifier: '*.www.example.test' });
  });

  for (const [what, value, isPermitted] of [
    ['this validation method', 'ca.example.test; validationmethods=http-01,dns-01', true],
    ['another validation method', 'ca.example.test; validationmethods=http-01', false],
    ['this account', 'ca.example.test; accounturi=https://vault.example.test/acme/local-ca/account/1', true],
    [
      'another account',
      'ca.example.test; accounturi=https://vault.example.test/acme/local-ca/account/2',
      false,
    ],
    ['an invalid parameter', 'ca.example.test; what', false],
    ['two accounturi parameters', 'ca.example.test; accounturi=x; accounturi=y', false],
  ] as const) {
    test(`for ${what} ${isPermitted ? 'permit' : 'forbid'} issuance`, async (t) => {
      const { validate } = await checked(t, { 'CAA www.example.test': [caa(value)] });
      assert.equal((await validate({ type }))?.type, isPermitted ? undefined : 'caa');
    });
  }

  test('with an unknown tag forbid issuance if they are critical, and permit it otherwise', async (t) => {
    const { validate, refused, dns } = await checked(t, {
      'CAA www.example.test': [caa('x', 'unheard', 128), caa('ca.example.test')],
    });
    await refused('caa', /has a critical record with the unknown tag "unheard"$/, { type });
    dns.records = { ...valid, 'CAA www.example.test': [caa('x', 'unheard')] };
    assert.equal(await validate({ type }), undefined);
  });

  test('fail the validation with a dns problem if the lookup fails', async (t) => {
    const { refused, dns } = await checked(t, {});
    dns.trouble = ({ type: asked }) => (asked === 'CAA' ? 'SERVFAIL' : undefined);
    await refused('dns', /query for the CAA of www\.example\.test failed/, { type });
  });
});
