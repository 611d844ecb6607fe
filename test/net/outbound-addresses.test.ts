/** Which addresses the vault connects to, in every form that leads to one, and what the setting lets through. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowanceFor, parseAllowedOutbound, refusalOf } from '../../src/net/outbound-addresses.ts';

const refused: Readonly<Record<string, readonly string[]>> = {
  'a loopback address': [
    ...['127.0.0.1', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1'],
    ...['::127.0.0.1', '::ffff:0:127.0.0.1', '64:ff9b::127.0.0.1', '64:ff9b:1::7f00:1', '2002:7f00:1::'],
    ...['64:ff9b:1:7f00:0:100::', '2001:0:7f00:1::', '2001:0:808:808::80ff:fffe'],
  ],
  'a link-local address': ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1', '2002:a9fe:1::'],
  "a cloud's metadata service": [
    ...['169.254.169.254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1'],
    ...['fd00:ec2::254', '100.100.100.200', '168.63.129.16', '169.254.170.2', 'fd20:ce::254'],
  ],
  'a multicast address': ['224.0.0.1', '239.255.255.250', 'ff02::1', 'ff0e::1', '::ffff:224.0.0.251'],
  'the unspecified address': ['0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0', '64:ff9b::'],
  'a reserved address': ['240.0.0.1', '255.255.255.255'],
};

const open = [
  ...['8.8.8.8', '10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', '126.255.255.255', '128.0.0.1'],
  ...['169.253.255.255', '169.255.0.0', '223.255.255.255', '2606:4700::1111', 'fd12:3456::1', 'fec0::1'],
  ...[
    '::ffff:10.0.0.1',
    '64:ff9b::808:808',
    '2002:808:808::1',
    '64:ff9b:1:808:8:800::',
    '2001:db8::7f00:1',
    '2001:4860::1',
  ],
];

test('loopback, link-local, metadata, multicast and reserved addresses are rejected in every form', () => {
  for (const [kind, addresses] of Object.entries(refused)) {
    for (const address of addresses) assert.equal(refusalOf(address, 443, []), kind, address);
  }
  for (const address of open) assert.equal(refusalOf(address, 443, []), undefined, address);
  assert.equal(refusalOf('example.com', 443, []), 'not an IP address');
});

test('an allowed address or network applies only to itself and, if specified, to its port', () => {
  const allowed = ['127.0.0.1:8443', '127.0.0.2', '[::1]:53', '169.254.0.0/16', 'fe80::/10:25'].map(
    (text) => {
      const one = parseAllowedOutbound(text);
      return one ?? assert.equal(text, 'fe80::/10:25');
    },
  );
  const rules = allowed.filter((one) => one !== undefined);
  const cases: readonly (readonly [string, number, boolean])[] = [
    ['127.0.0.1', 8443, true],
    ['::ffff:127.0.0.1', 8443, true],
    ['127.0.0.1', 8444, false],
    ['127.0.0.3', 8443, false],
    ['127.0.0.2', 1, true],
    ['::1', 53, true],
    ['::1', 54, false],
    ['169.254.169.254', 80, true],
    // What a gateway makes of it is not what was allowed.
    ['64:ff9b::127.0.0.2', 1, false],
  ];
  for (const [address, port, isOpen] of cases) {
    assert.equal(refusalOf(address, port, rules) === undefined, isOpen, `${address} ${port}`);
  }
});

test('allowanceFor returns a valid setting for the address and the port only', () => {
  for (const address of ['127.0.0.1', '::1', 'fe80::1%eth0']) {
    const allowed = parseAllowedOutbound(allowanceFor(address, 25));
    assert(allowed);
    assert.equal(refusalOf(address, 25, [allowed]), undefined);
    assert.notEqual(refusalOf(address, 26, [allowed]), undefined);
  }
});

test('parseAllowedOutbound returns undefined for an invalid address, network or port', () => {
  const wrong = ['', 'localhost', '127.0.0.1:', '127.0.0.1:0', '127.0.0.1:65536', '127.0.0.1/8', '[::1]:x'];
  for (const text of [...wrong, '127.1', '2130706433', '[127.0.0.1', '127.0.0.1:25:26', '::1:53x']) {
    assert.equal(parseAllowedOutbound(text), undefined, text);
  }
});
