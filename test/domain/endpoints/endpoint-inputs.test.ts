/** What an endpoint may be: addresses, server names, intervals and trust, as the API and the command line take them. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { day, minute } from '../../../src/base/duration.ts';
import { Problem } from '../../../src/base/problem.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import {
  addressText,
  createEndpointInput,
  parseAddress,
  updateEndpointInput,
  usualPort,
} from '../../../src/domain/endpoints/endpoint-inputs.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { startTlsProtocols } from '../../../src/net/starttls.ts';
import { makeChain } from '../../harness/ca/private-chain.ts';

let pem: string;
before(async () => {
  pem = encodePem('CERTIFICATE', (await makeChain()).root.certificate);
});

const addresses: readonly (readonly [text: string, host: string, port: number | undefined])[] = [
  ['www.example.com', 'www.example.com', undefined],
  ['WWW.Example.com:8443', 'www.example.com', 8443],
  ['bücher.example:443', 'xn--bcher-kva.example', 443],
  ['mail', 'mail', undefined],
  ['192.0.2.1', '192.0.2.1', undefined],
  ['192.0.2.1:1', '192.0.2.1', 1],
  ['2001:DB8::1', '2001:db8::1', undefined],
  ['[2001:db8:0::1]:65535', '2001:db8::1', 65_535],
];
for (const [text, host, port] of addresses) {
  test(`the address ${text} is accepted`, () => {
    assert.deepEqual(parseAddress(text), { host, port });
  });
}

const wrong = [
  ...['', ':443', '*.example.com', 'a b', 'https://a.example', 'a.example/x', 'user@a.example', 'a.example:'],
  ...['a.example:0', 'a.example:65536', 'a.example:0443', 'a.example:-1', 'a.example:1e3', 'a.example:443:1'],
  ...['[a.example]:443', '[192.0.2.1]:443', '[]:443', '[::1', '::1]:1', '2001:db8::1:99999', 'fe80::1%eth0'],
  ...['a..example', `${'a'.repeat(64)}.example`, `${'a.'.repeat(130)}example`, 'a.example\n', '\0', '[::1]x'],
  ...['2130706433', '0x7f.1', '127.1'],
];
for (const text of wrong) {
  test(`the address ${JSON.stringify(text.slice(0, 40))} is rejected`, () => {
    assert.equal(parseAddress(text), undefined);
    assert.throws(() => parseInput(createEndpointInput, { address: text }), Problem);
  });
}

test('the text of an address can be parsed again, also that of an IPv6 address', () => {
  for (const [, host, port = 443] of addresses) {
    assert.deepEqual(parseAddress(addressText({ host, port })), { host, port });
  }
});

test('each protocol has its usual port', () => {
  assert.equal(usualPort(null), 443);
  assert.deepEqual(startTlsProtocols.map(usualPort), [25, 143, 110, 389, 21, 5222, 5432, 3306]);
});

const refused: readonly (readonly [what: string, input: Record<string, unknown>, message: RegExp])[] = [
  ['no address', {}, /address/],
  ['an interval below five minutes', { interval: '4m' }, /"4m" is not an interval: .* from 5m to 30d/],
  ['an interval above thirty days', { interval: '31d' }, /"31d" is not an interval/],
  ['an interval without a unit', { interval: '60' }, /"60" is not an interval/],
  ['an address as server name', { server_name: '192.0.2.1' }, /"192\.0\.2\.1" is not a server name/],
  ['a wildcard as server name', { server_name: '*.example.com' }, /is not a server name/],
  ['an unknown protocol', { starttls: 'nntp' }, /starttls/],
  ['an unknown trust', { trust: 'bundle' }, /trust/],
  ['a bundle that is not PEM', { ca_pem: 'MIIB' }, /not a PEM certificate/],
  [
    'a bundle with a damaged certificate',
    { ca_pem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' },
    /not a PEM certificate/,
  ],
  ['an unknown member', { verify: true }, /verify/],
];
for (const [what, input, message] of refused) {
  test(`an endpoint with ${what} is rejected with a message`, () => {
    const address = what === 'no address' ? {} : { address: 'a.example:443' };
    assert.throws(
      () => parseInput(createEndpointInput, { ...address, ...input }),
      (error: unknown) =>
        error instanceof Problem && message.test(JSON.stringify(error.errors).replaceAll('\\"', '"')),
    );
  });
}

test('a bundle and a trust exclude each other, in both inputs', () => {
  for (const schema of [createEndpointInput, updateEndpointInput]) {
    const input = { address: 'a.example', trust: 'public', ca_pem: pem };
    assert.throws(() => parseInput(schema, input), Problem);
    assert.equal(parseInput(schema, { ...input, ca_pem: null }).trust, 'public');
  }
});

test('a bundle keeps only its certificates, and a large one is rejected before it is read', () => {
  const text = `# a comment\n${pem}`;
  assert.equal(parseInput(createEndpointInput, { address: 'a.example', ca_pem: text }).ca_pem, pem);
  const large = pem.repeat(Math.ceil(262_145 / pem.length));
  assert.throws(() => parseInput(createEndpointInput, { address: 'a.example', ca_pem: large }), Problem);
});

test('the limits of an interval are accepted, and an empty server name stands for none', () => {
  const parsed = (interval: string) =>
    parseInput(createEndpointInput, { address: 'a.example', interval, server_name: '' });
  assert.deepEqual([parsed('5m').interval, parsed('30d').interval], [5 * minute, 30 * day]);
  assert.equal(parsed('5m').server_name, '');
});
