/** The client behind proxies: which headers are trusted, for known cases and for arbitrary input. */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { clientOf, type RequestOrigin } from '../../../src/http/request/client-address.ts';
import { type IpNetwork, isInside, parseIpAddress, parseIpNetwork } from '../../../src/net/ip-network.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';

const networks = (...texts: string[]) => texts.map((text) => parseIpNetwork(text) as IpNetwork);
const trusted = networks('10.0.0.0/8', '127.0.0.1', '2001:db8:aaaa::/48', '::1');

const contradiction = 'contradiction';

/** Each from the proxy 10.0.0.1, unless it says otherwise. */
const addresses: readonly (readonly [why: string, arrival: Partial<RequestOrigin>, client: string])[] = [
  ['no header at all', {}, '10.0.0.1'],
  [
    'an untrusted peer that sends X-Forwarded-For',
    { peer: '192.0.2.66', forwardedFor: '198.51.100.1' },
    '192.0.2.66',
  ],
  [
    'an untrusted peer that sends Forwarded',
    { peer: '192.0.2.66', forwarded: 'for=198.51.100.1' },
    '192.0.2.66',
  ],
  ['an untrusted peer over IPv6', { peer: '2001:db8::66', forwardedFor: '198.51.100.1' }, '2001:db8::66'],
  ['one proxy', { forwardedFor: '198.51.100.1' }, '198.51.100.1'],
  ['one proxy, and a value that its client sent', { forwardedFor: '10.9.9.9, 198.51.100.1' }, '198.51.100.1'],
  [
    'one proxy, and 900 values that its client sent',
    { forwardedFor: `${'10.9.9.9,'.repeat(900)}198.51.100.1` },
    '198.51.100.1',
  ],
  ['two proxies', { forwardedFor: '203.0.113.9, 198.51.100.1, 10.0.0.2' }, '198.51.100.1'],
  ['only proxies', { forwardedFor: '10.0.0.3, 10.0.0.2' }, '10.0.0.3'],
  ['spaces and empty elements', { forwardedFor: ' ,\t198.51.100.1 ,, ' }, '198.51.100.1'],
  ['a header without elements', { forwardedFor: ' , ' }, '10.0.0.1'],
  ['a port', { forwardedFor: '198.51.100.1:4711' }, '198.51.100.1'],
  ['IPv6', { forwardedFor: '2001:DB8:0:0::1' }, '2001:db8::1'],
  ['IPv6 in brackets', { forwardedFor: '[2001:db8::1]' }, '2001:db8::1'],
  ['IPv6 in brackets with a port', { forwardedFor: '[2001:db8::1]:4711' }, '2001:db8::1'],
  ['IPv6 in quotation marks', { forwardedFor: '"[2001:db8::1]:4711"' }, '2001:db8::1'],
  ['IPv4 that is mapped into IPv6', { forwardedFor: '::ffff:198.51.100.1' }, '198.51.100.1'],
  ['IPv4 that is mapped into IPv6 in hexadecimal', { forwardedFor: '[::FFFF:c633:6401]:1' }, '198.51.100.1'],
  [
    'a proxy that is mapped into IPv6',
    { peer: '::ffff:10.0.0.1', forwardedFor: '198.51.100.1' },
    '198.51.100.1',
  ],
  ['a proxy over IPv6', { peer: '2001:db8:aaaa::7', forwardedFor: '198.51.100.1' }, '198.51.100.1'],
  [
    'an untrusted neighbor of an IPv6 proxy',
    { peer: '2001:db8:aaab::7', forwardedFor: '198.51.100.1' },
    '2001:db8:aaab::7',
  ],
  ['a peer with a zone', { peer: 'fe80::1%eth0', forwardedFor: '198.51.100.1' }, 'fe80::1'],
  ['IPv4 in brackets', { forwardedFor: '198.51.100.1, [10.0.0.2]' }, '10.0.0.1'],
  ['an address with leading zeros', { forwardedFor: '198.51.100.1, 010.0.0.2' }, '10.0.0.1'],
  ['an address with a zone', { forwardedFor: '198.51.100.1, fe80::1%eth0' }, '10.0.0.1'],
  ['a name', { forwardedFor: '198.51.100.1, proxy.example' }, '10.0.0.1'],
  ['an unknown client', { forwardedFor: 'unknown, 10.0.0.2' }, '10.0.0.2'],
  ['a client behind an unknown one', { forwardedFor: '198.51.100.1, unknown, 10.0.0.2' }, '10.0.0.2'],
  ['Forwarded', { forwarded: 'for=198.51.100.1' }, '198.51.100.1'],
  [
    'Forwarded with more',
    { forwarded: 'By=10.0.0.1; FOR=198.51.100.1 ;proto=https;host="a,b;c"' },
    '198.51.100.1',
  ],
  ['Forwarded by two', { forwarded: 'for=198.51.100.1, for=10.0.0.2;by=10.0.0.1' }, '198.51.100.1'],
  ['Forwarded with a port', { forwarded: 'for="198.51.100.1:4711"' }, '198.51.100.1'],
  ['Forwarded with an obfuscated port', { forwarded: 'for="[2001:db8::1]:_port.1"' }, '2001:db8::1'],
  ['Forwarded with IPv6', { forwarded: 'for="[2001:db8::1]"' }, '2001:db8::1'],
  ['Forwarded with escapes', { forwarded: 'for="198.51\\.100.1"' }, '198.51.100.1'],
  ['Forwarded: unknown', { forwarded: 'for=198.51.100.1, for=unknown, for=10.0.0.2' }, '10.0.0.2'],
  ['Forwarded: obfuscated', { forwarded: 'for=198.51.100.1, for=_gazonk, for=10.0.0.2' }, '10.0.0.2'],
  ['Forwarded without a client', { forwarded: 'for=198.51.100.1, proto=https' }, '10.0.0.1'],
  ['Forwarded with two clients', { forwarded: 'for=198.51.100.1;for=198.51.100.2' }, '10.0.0.1'],
  ['Forwarded with IPv6 that lacks its quotation marks', { forwarded: 'for=[2001:db8::1]' }, '10.0.0.1'],
  ['Forwarded with spaces around =', { forwarded: 'for = 198.51.100.1' }, '10.0.0.1'],
  ['a quotation mark that is never closed', { forwarded: 'for=", for=198.51.100.1' }, '198.51.100.1'],
  [
    'a quotation mark that the value of the proxy would close',
    { forwarded: 'for=", for="[2001:db8::1]"' },
    '2001:db8::1',
  ],
  [
    'a quotation mark that is closed with an escape',
    { forwarded: 'for="\\", for="[2001:db8::1]"' },
    '2001:db8::1',
  ],
  [
    'both headers with the same client',
    { forwardedFor: '198.51.100.1', forwarded: 'for=198.51.100.1' },
    '198.51.100.1',
  ],
  ['both headers, one of them empty', { forwardedFor: '198.51.100.1', forwarded: ' , ' }, '198.51.100.1'],
  [
    'both headers with different clients',
    { forwardedFor: '198.51.100.1', forwarded: 'for=10.0.0.9' },
    contradiction,
  ],
  [
    'both headers, one of them with an unknown client',
    { forwardedFor: '198.51.100.1', forwarded: 'for=unknown' },
    contradiction,
  ],
  ['both headers, one of them malformed', { forwardedFor: '198.51.100.1', forwarded: '"' }, contradiction],
  [
    'both headers from an untrusted peer',
    { peer: '192.0.2.66', forwardedFor: '1.2.3.4', forwarded: 'for=5.6.7.8' },
    '192.0.2.66',
  ],
];

suite('the client', () => {
  for (const [why, arrival, expected] of addresses) {
    test(`behind ${why} is ${expected.length > 40 ? '…' : expected}`, () => {
      const client = clientOf({ peer: '10.0.0.1', ...arrival }, trusted);
      assert.equal(client === undefined ? contradiction : client.ip, expected);
    });
  }

  test('is the peer if no proxy is trusted, and undefined if the peer has gone', () => {
    assert.deepEqual(clientOf({ peer: '10.0.0.1', forwardedFor: '1.2.3.4' }, []), {
      ip: '10.0.0.1',
      scheme: undefined,
    });
    assert.deepEqual(clientOf({ peer: undefined, forwardedFor: '1.2.3.4' }, trusted), {
      ip: undefined,
      scheme: undefined,
    });
  });
});

const oneHop = '198.51.100.1';
const twoHops = '198.51.100.1, 10.0.0.2';

const schemes: readonly (readonly [
  why: string,
  arrival: Partial<RequestOrigin>,
  scheme: string | undefined,
])[] = [
  ['no header', { forwardedFor: oneHop }, undefined],
  ['X-Forwarded-Proto', { forwardedFor: oneHop, forwardedProto: 'https' }, 'https'],
  ['X-Forwarded-Proto alone', { forwardedProto: 'HTTPS' }, 'https'],
  ['X-Forwarded-Proto from an untrusted peer', { peer: '192.0.2.66', forwardedProto: 'https' }, undefined],
  ['another protocol', { forwardedFor: oneHop, forwardedProto: 'wss' }, undefined],
  [
    'a forged value before that of the proxy',
    { forwardedFor: oneHop, forwardedProto: 'https, http' },
    'http',
  ],
  ['one value for each of two proxies', { forwardedFor: twoHops, forwardedProto: 'https, http' }, 'https'],
  [
    'a forged value before those of two proxies',
    { forwardedFor: twoHops, forwardedProto: 'https, http, http' },
    'http',
  ],
  ['one value that two proxies passed on', { forwardedFor: twoHops, forwardedProto: 'https' }, 'https'],
  ['Forwarded', { forwarded: 'for=198.51.100.1;proto=https' }, 'https'],
  ['Forwarded by two', { forwarded: 'for=198.51.100.1;proto=https, for=10.0.0.2;proto=http' }, 'https'],
  [
    'Forwarded by two, and a forged value',
    { forwarded: 'for=10.0.0.9;proto=https, for=198.51.100.1;proto=http, for=10.0.0.2;proto=https' },
    'http',
  ],
  ['Forwarded without a client', { forwarded: 'proto=https' }, 'https'],
  [
    'Forwarded and X-Forwarded-Proto',
    { forwarded: 'for=198.51.100.1;proto=http', forwardedProto: 'https' },
    'https',
  ],
];

suite('the scheme', () => {
  for (const [why, arrival, expected] of schemes) {
    test(`with ${why} is ${expected ?? 'unknown'}`, () =>
      assert.equal(clientOf({ peer: '10.0.0.1', ...arrival }, trusted)?.scheme, expected));
  }
});

suite('arbitrary input', () => {
  const written = fc.oneof(
    fc.string({ unit: 'grapheme-ascii' }),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdef.:,;="[]\\ _for/%') }),
    fc
      .array(
        fc.constantFrom(
          'for=10.0.0.2',
          'for="[::1]"',
          '10.0.0.2',
          '"',
          '\\',
          ',',
          ';',
          '=',
          'unknown',
          '::1',
          ' ',
        ),
      )
      .map((parts) => parts.join('')),
  );
  const stranger = fc.oneof(
    fc.ipV4().filter((text) => !isInside(parseIpAddress(text) as never, trusted)),
    fc.ipV6().filter((text) => !isInside(parseIpAddress(text) as never, trusted)),
  );

  test('from an untrusted peer is ignored', () => {
    fc.assert(
      fc.property(stranger, written, written, written, (peer, forwardedFor, forwarded, forwardedProto) => {
        const client = clientOf({ peer, forwardedFor, forwarded, forwardedProto }, trusted);
        assert.deepEqual(client, { ip: parseIpAddress(peer)?.text, scheme: undefined });
      }),
    );
  });

  test('from a client before the value of its proxy is ignored in both headers', () => {
    fc.assert(
      fc.property(stranger, written, (client, lie) => {
        const expected = parseIpAddress(client)?.text;
        const quoted = client.includes(':') ? `"[${client}]"` : client;
        const headers = [
          { forwardedFor: `${lie}, ${client}` },
          { forwarded: `${lie}, for=${quoted}` },
          { forwarded: `${lie}, For=${quoted};proto=http, for=10.0.0.2` },
          { forwardedFor: `${lie}, ${client}:99, 10.0.0.2, [::1]:7`.replace(/(:.*:.*):99/, '$1') },
        ];
        for (const header of headers)
          assert.equal(clientOf({ peer: '10.0.0.1', ...header }, trusted)?.ip, expected);
      }),
      fuzzRuns(1000),
    );
  });

  test('yields a valid address or a contradiction', () => {
    fc.assert(
      fc.property(written, written, (forwardedFor, forwarded) => {
        const client = clientOf({ peer: '10.0.0.1', forwardedFor, forwarded }, trusted);
        if (client !== undefined) assert.equal(parseIpAddress(client.ip ?? '')?.text, client.ip);
      }),
      fuzzRuns(1000),
    );
  });
});
