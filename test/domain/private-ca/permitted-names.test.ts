/** Which names a confined CA issues for. test/crypto/x509/name-constraints.test.ts has the same names for OpenSSL. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CertifiedNames,
  forbiddenName,
  isNarrower,
  type PermittedLists,
} from '../../../src/domain/private-ca/permitted-names.ts';

const permitted = {
  permitDomains: ['staging.example', 'internal'],
  permitIps: ['10.0.0.0/8', '2001:db8::/33'],
};

const within: Readonly<Record<string, CertifiedNames>> = {
  'a permitted domain': { domains: ['staging.example'] },
  'a deep subdomain': { domains: ['a.b.c.staging.example'] },
  'a wildcard of a permitted domain': { domains: ['*.staging.example'] },
  'a name below a top-level domain': { domains: ['db.internal'] },
  'addresses in the networks': { domains: ['10.255.0.1', '2001:db8:7fff::1'] },
  'email addresses': { emails: ['a@staging.example', 'b@mail.staging.example'] },
  'a SPIFFE ID': { uris: ['spiffe://staging.example/web'] },
  'a URI with a port': { uris: ['https://api.staging.example:8443/x?y'] },
  'subject fields that are not hosts': { subject: ['O=www.example.com', 'CN=Alice Example'] },
  'a login as the common name of a client': { subject: ['CN=alice'], usage: 'client' },
};

for (const [title, names] of Object.entries(within)) {
  test(`a CA for two domains and two networks permits ${title}`, () => {
    assert.equal(forbiddenName(permitted, names), undefined);
  });
}

const outside: Readonly<Record<string, CertifiedNames>> = {
  'another domain': { domains: ['www.example.com'] },
  'a parent domain': { domains: ['example'] },
  'a wildcard of a parent domain': { domains: ['*.example'] },
  'a domain with only the same suffix': { domains: ['notstaging.example'] },
  'an address of another network': { domains: ['11.0.0.1'] },
  'an IPv6 address of another network': { domains: ['2001:db8:8000::1'] },
  'a permitted IPv4 address mapped to IPv6': { domains: ['::ffff:a00:1'] },
  'an email address at another domain': { emails: ['a@example.com'] },
  'a SPIFFE ID of another domain': { uris: ['spiffe://prod.example/web'] },
  'a URI without a host': { uris: ['urn:staging.example:1'] },
  'a URI with a permitted domain as its user': { uris: ['https://staging.example@example.com/'] },
  'a URI with a user': { uris: ['https://a@b.staging.example/'] },
  'a URI with a permitted domain in its query': { uris: ['https://example.com?x.staging.example/'] },
  'a URI with a permitted domain in its fragment': { uris: ['https://a.staging.example#b.staging.example'] },
  'a URI with an IP address': { uris: ['https://10.0.0.1/'] },
  'a common name that is a host': { subject: ['CN=www.example.com'] },
  'a common name that OpenSSL takes for a host': { subject: ['CN=a_b.example.com'] },
  'a common name that is an address': { subject: ['CN=192.0.2.1'] },
  'a common name that is a mailbox': { subject: ['CN=alice@example.com'], usage: 'client' },
  'a common name of one label for servers': { subject: ['CN=localhost'], usage: 'server' },
  'an international common name': { subject: ['CN=bücher.example'] },
};

for (const [title, names] of Object.entries(outside)) {
  test(`a CA for two domains and two networks does not permit ${title}`, () => {
    const { usage: _, ...lists } = names;
    const [path, [name] = []] = Object.entries(lists)[0] ?? [];
    assert.deepEqual(forbiddenName(permitted, names), { path, name });
  });
}

test('forbiddenName returns the forbidden name among permitted ones', () => {
  const found = forbiddenName(permitted, { domains: ['a.internal', 'b.internal', 'c.example.com'] });
  assert.equal(found?.name, 'c.example.com');
});

test('a CA for networks permits no domain, and a CA for domains no address', () => {
  const networks = { permitDomains: [], permitIps: ['0.0.0.0/0'] };
  assert.equal(forbiddenName(networks, { domains: ['10.0.0.1', 'a.internal'] })?.name, 'a.internal');
  assert.equal(forbiddenName(networks, { emails: ['a@internal'] })?.name, 'a@internal');
  const domains = { permitDomains: ['internal'], permitIps: [] };
  assert.equal(forbiddenName(domains, { domains: ['a.internal', '10.0.0.1'] })?.name, '10.0.0.1');
});

test('isNarrower is true only if the outer lists permit everything in the inner lists', () => {
  const any: PermittedLists = { permitDomains: [], permitIps: [] };
  const cases: [PermittedLists, PermittedLists, boolean][] = [
    [any, any, true],
    [permitted, any, true],
    [any, permitted, false],
    [permitted, permitted, true],
    [{ permitDomains: ['a.internal'], permitIps: [] }, permitted, true],
    [{ permitDomains: ['example'], permitIps: [] }, permitted, false],
    [{ permitDomains: [], permitIps: ['10.1.0.0/16'] }, permitted, true],
    [{ permitDomains: [], permitIps: ['0.0.0.0/0'] }, permitted, false],
    [{ permitDomains: [], permitIps: ['10.0.0.0/7'] }, permitted, false],
    [{ permitDomains: [], permitIps: ['2001:db8::/32'] }, permitted, false],
  ];
  for (const [inner, outer, expected] of cases) {
    assert.equal(isNarrower(inner, outer), expected, JSON.stringify([inner, outer]));
  }
});
