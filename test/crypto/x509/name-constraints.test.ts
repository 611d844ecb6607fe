/** The constraints of a CA as OpenSSL enforces them: names within them verify, and all others fail. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LeafRequest } from '../../../src/crypto/x509/leaf-certificate.ts';
import { parseIpNetwork } from '../../../src/net/ip-network.ts';
import {
  assertVerifies,
  extensionOf,
  identifier,
  makeChain,
  verify,
} from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const networks = ['10.0.0.0/8', '192.0.2.128/25', '2001:db8::/33'].map((text) => {
  const network = parseIpNetwork(text);
  assert.ok(network);
  return network;
});
const domains = ['staging.example', 'internal'];

type Names = { domains?: string[] } & Pick<LeafRequest, 'uris' | 'emails' | 'subject'>;

const leafFor = ({ domains = [], ...names }: Names) => ({ identifiers: domains.map(identifier), ...names });

const within: Readonly<Record<string, Names>> = {
  'a permitted domain': { domains: ['staging.example'] },
  'a name several levels below a permitted domain': { domains: ['a.b.c.staging.example'] },
  'a wildcard below a permitted domain': { domains: ['*.staging.example'] },
  'a name below a top-level domain': { domains: ['db.internal'] },
  'addresses of the networks': { domains: ['10.255.0.1', '192.0.2.128', '2001:db8:7fff::1'] },
  'email addresses': { emails: ['a@staging.example', 'b@mail.staging.example'] },
  'a SPIFFE ID': { uris: ['spiffe://staging.example/web'] },
  'a URI of a host below a permitted domain': { uris: ['https://api.staging.example:8443/x?y'] },
  'a common name that is not a domain': { subject: ['CN=alice'] },
};

const outside: Readonly<Record<string, Names>> = {
  'another domain': { domains: ['www.example.com'] },
  'the parent of a permitted domain': { domains: ['example'] },
  'a domain that ends with the text of a permitted one': { domains: ['notstaging.example'] },
  'a permitted domain beside one that is not': { domains: ['staging.example', 'example.com'] },
  'an address of another network': { domains: ['192.0.2.127'] },
  'an IPv6 address of another network': { domains: ['2001:db8:8000::1'] },
  'an email address of another domain': { emails: ['a@example.com'] },
  'a SPIFFE ID of another domain': { uris: ['spiffe://prod.example/web'] },
  'a URI without a host': { uris: ['urn:example:1'] },
  'a common name that is a domain': { subject: ['CN=www.example.com'] },
};

const refusal =
  /permitted subtree violation|excluded subtree violation|unsupported name constraint|unsupported or invalid name syntax/;

test(
  'the extension is critical and lists domains, email and URI hosts, and networks',
  needs('openssl'),
  async () => {
    const permitted = { domains: ['staging.example'], networks };
    const { root, intermediate } = await makeChain({
      permitted,
      leaf: leafFor({ domains: ['staging.example'] }),
    });
    for (const authority of [root, intermediate]) {
      const lines = extensionOf(authority, 'nameConstraints')
        .split('\n')
        .map((line) => line.trim());
      assert.deepEqual(lines, [
        'X509v3 Name Constraints: critical',
        'Permitted:',
        'DNS:staging.example',
        'email:staging.example',
        'email:.staging.example',
        'URI:staging.example',
        'URI:.staging.example',
        'IP:10.0.0.0/255.0.0.0',
        'IP:192.0.2.128/255.255.255.128',
        'IP:2001:DB8:0:0:0:0:0:0/FFFF:FFFF:8000:0:0:0:0:0',
      ]);
    }
  },
);

for (const keyType of ['ec256', 'ec384', 'rsa2048', 'ed25519'] as const) {
  test(
    `a leaf with a key of type ${keyType} verifies within the constraints and fails outside`,
    needs('openssl'),
    async () => {
      const terms = { permitted: { domains, networks }, leafKeyType: keyType };
      assertVerifies(await makeChain({ ...terms, leaf: leafFor({ domains: ['www.internal', '10.0.0.1'] }) }));
      const beyond = await makeChain({ ...terms, leaf: leafFor({ domains: ['www.example.com'] }) });
      assert.throws(() => verify(beyond), refusal);
    },
  );
}

for (const [title, names] of Object.entries(within)) {
  test(`OpenSSL accepts ${title}`, needs('openssl'), async () => {
    assertVerifies(await makeChain({ permitted: { domains, networks }, leaf: leafFor(names) }));
  });
}

for (const [title, names] of Object.entries(outside)) {
  test(`OpenSSL rejects ${title}`, needs('openssl'), async () => {
    const chain = await makeChain({ permitted: { domains, networks }, leaf: leafFor(names) });
    assert.throws(() => verify(chain), refusal);
  });
}

test('OpenSSL rejects IP addresses under a CA for domains only', needs('openssl'), async () => {
  for (const address of ['10.0.0.1', '2001:db8::1']) {
    const chain = await makeChain({
      permitted: { domains, networks: [] },
      leaf: leafFor({ domains: ['www.internal', address] }),
    });
    assert.throws(() => verify(chain), /excluded subtree violation/);
  }
});

test('OpenSSL rejects all other names under a CA for networks only', needs('openssl'), async () => {
  const permitted = { domains: [], networks };
  assertVerifies(await makeChain({ permitted, leaf: leafFor({ domains: ['10.0.0.1'] }) }));
  const others: Names[] = [
    { domains: ['www.internal'] },
    { emails: ['a@internal'] },
    { uris: ['spiffe://internal/web'] },
  ];
  for (const names of others) {
    const chain = await makeChain({ permitted, leaf: leafFor(names) });
    assert.throws(() => verify(chain), /permitted subtree violation/);
  }
});
