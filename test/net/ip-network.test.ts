/** Addresses and networks: one address is one however it is written, and a network has what begins like it. */

import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { isInside, neighborhood, parseIpAddress, parseIpNetwork } from '../../src/net/ip-network.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';

const addresses: Readonly<Record<string, string | undefined>> = {
  '192.0.2.7': '192.0.2.7',
  '0.0.0.0': '0.0.0.0',
  '255.255.255.255': '255.255.255.255',
  '::': '::',
  '::1': '::1',
  '1::': '1::',
  '2001:DB8:0:0:0:0:0:1': '2001:db8::1',
  '2001:db8::0:1': '2001:db8::1',
  '2001:db8:0:1:1:1:1:1': '2001:db8:0:1:1:1:1:1',
  '2001:0:0:1:0:0:0:1': '2001:0:0:1::1',
  '2001:db8:0:0:1:0:0:1': '2001:db8::1:0:0:1',
  '10:0:0:100:0:0:0:1': '10:0:0:100::1',
  '::ffff:192.0.2.7': '192.0.2.7',
  '::FFFF:c000:207': '192.0.2.7',
  '0:0:0:0:0:ffff:192.0.2.7': '192.0.2.7',
  '::192.0.2.7': '::c000:207',
  '64:ff9b::192.0.2.7': '64:ff9b::c000:207',
  '': undefined,
  '192.0.2': undefined,
  '192.0.2.07': undefined,
  '192.0.2.256': undefined,
  '0xc0.0.2.7': undefined,
  ' 192.0.2.7': undefined,
  '192.0.2.7/32': undefined,
  ':::': undefined,
  '1::2::3': undefined,
  '[::1]': undefined,
  'fe80::1%eth0': undefined,
  localhost: undefined,
};

for (const [text, expected] of Object.entries(addresses)) {
  test(`parseIpAddress reads ${JSON.stringify(text)} as ${expected ?? 'no address'}`, () =>
    assert.equal(parseIpAddress(text)?.text, expected));
}

const networks: Readonly<Record<string, string | undefined>> = {
  '192.0.2.7': '192.0.2.7',
  '192.0.2.7/32': '192.0.2.7',
  '192.0.2.0/24': '192.0.2.0/24',
  '0.0.0.0/0': '0.0.0.0/0',
  '10.0.0.0/8': '10.0.0.0/8',
  '2001:DB8::/32': '2001:db8::/32',
  '::1/128': '::1',
  '::/0': '::/0',
  '::ffff:10.0.0.0/104': '10.0.0.0/8',
  '::ffff:0:0/96': '0.0.0.0/0',
  '::ffff:10.0.0.1': '10.0.0.1',
  '::ffff:0:0/95': undefined,
  '10.0.0.1/8': undefined,
  '2001:db8::1/32': undefined,
  '10.0.0.0/33': undefined,
  '10.0.0.0/08': undefined,
  '10.0.0.0/-1': undefined,
  '10.0.0.0/255.0.0.0': undefined,
  '10.0.0.0/': undefined,
  '/8': undefined,
  '::/129': undefined,
  '10.0.0.0/8/8': undefined,
  '10/8': undefined,
  'fe80::%eth0/64': undefined,
  '*': undefined,
  '': undefined,
};

for (const [text, expected] of Object.entries(networks)) {
  test(`parseIpNetwork reads ${JSON.stringify(text)} as ${expected ?? 'no network'}`, () =>
    assert.equal(parseIpNetwork(text)?.text, expected));
}

suite('any address', () => {
  const anyAddress = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV4().map((text) => `::ffff:${text}`),
  );

  test('is parsed to the same value as its canonical form', () => {
    fc.assert(
      fc.property(anyAddress, (text) => {
        const address = parseIpAddress(text);
        assert(address);
        assert.deepEqual(parseIpAddress(address.text), address);
        if (address.family === 6) assert.equal(new URL(`http://[${text}]/`).hostname, `[${address.text}]`);
      }),
      fuzzRuns(2000),
    );
  });

  test("is inside a network exactly if Node's BlockList says so", () => {
    fc.assert(
      fc.property(anyAddress, anyAddress, fc.nat(128), (text, other, seed) => {
        const address = parseIpAddress(text);
        const base = parseIpAddress(other);
        assert(address && base);
        const near = base.family === address.family && seed % 2 === 0 ? address : base;
        const length = seed % (near.family === 4 ? 33 : 129);
        const network = { ...near, length };
        const list = new BlockList();
        list.addSubnet(near.text, length, near.family === 4 ? 'ipv4' : 'ipv6');
        // Node also finds mapped addresses in IPv6 networks such as ::/0.
        const expected = list.check(address.text, address.family === 4 ? 'ipv4' : 'ipv6');
        assert.equal(isInside(address, [network]), address.family === near.family && expected);
      }),
      fuzzRuns(2000),
    );
  });

  test('is inside a network that differs in one bit only if that bit comes after the prefix length', () => {
    fc.assert(
      fc.property(anyAddress, fc.nat(127), fc.nat(128), (text, at, upTo) => {
        const address = parseIpAddress(text);
        assert(address);
        const bytes = [...address.bytes];
        const [bit, length] = [at % (8 * bytes.length), upTo % (8 * bytes.length + 1)];
        bytes[Math.floor(bit / 8)] = (bytes[Math.floor(bit / 8)] ?? 0) ^ (0x80 >> (bit % 8));
        const { family, text: network } = address;
        assert.equal(isInside(address, [{ family, text: network, bytes, length }]), bit >= length);
      }),
      fuzzRuns(2000),
    );
  });
});

test('isInside returns false for an empty list and for an IPv4 address in an IPv6 network', () => {
  const address = parseIpAddress('192.0.2.7');
  const [all4, all6] = [parseIpNetwork('0.0.0.0/0'), parseIpNetwork('::/0')];
  assert(address && all4 && all6);
  assert.equal(isInside(address, []), false);
  assert.equal(isInside(address, [all6]), false);
  assert.equal(isInside(address, [all6, all4]), true);
});

test('neighborhood returns the /64 of an IPv6 address, and any other address itself', () => {
  assert.equal(neighborhood('2001:db8:1:2:3:4:5:6'), neighborhood('2001:db8:1:2::'));
  assert.notEqual(neighborhood('2001:db8:1:2::1'), neighborhood('2001:db8:1:3::1'));
  assert.equal(neighborhood('fe80::1%eth0'), 'fe80::/64');
  assert.equal(neighborhood('::ffff:192.0.2.7'), '192.0.2.7');
  assert.equal(neighborhood('192.0.2.7'), '192.0.2.7');
  assert.equal(neighborhood('unknown'), 'unknown');
});
