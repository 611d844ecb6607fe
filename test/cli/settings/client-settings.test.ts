/** Settings about clients: what their texts mean, and what is refused with a way out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientSettings, trustedProxies } from '../../../src/cli/settings/client-settings.ts';

const from = '--option';

test('trusted proxies are comma-separated addresses and networks; ranges that include every client are rejected', () => {
  const read = (value: string) => trustedProxies({ value, from }).map(({ text }) => text);
  assert.deepEqual(trustedProxies(undefined), []);
  assert.deepEqual(read(' 127.0.0.1 ,10.0.0.0/8,2001:DB8::/32'), [
    '127.0.0.1',
    '10.0.0.0/8',
    '2001:db8::/32',
  ]);
  for (const value of [
    '10.0.0.1/8',
    'proxy.example',
    '*',
    '10.0.0.1,',
    '10.0.0.1 10.0.0.2',
    'fe80::1%eth0',
  ]) {
    assert.throws(() => read(value), /^OperatorError: --option: ".*" is not a network$/, value);
  }
  for (const value of ['0.0.0.0/0', '10.0.0.1,::/0', '::ffff:0:0/96'])
    assert.throws(() => read(value), /would let every client claim any address/, value);
});

test('the API key rate is a whole number, with 0 for no limit', () => {
  const rate = (value?: string) =>
    clientSettings((name) => (name === 'api-key-rate' && value !== undefined ? { value, from } : undefined))
      .apiKeyRate;
  assert.deepEqual([rate(), rate('0'), rate('600')], [undefined, 0, 600]);
  assert.throws(() => rate('-1'), /is not a whole number from 0 to 1000000/);
});

test('the maximum number of connections is a whole number from 10 to 1000000, 2000 by default', () => {
  const most = (value?: string) =>
    clientSettings((name) =>
      name === 'max-connections' && value !== undefined ? { value, from } : undefined,
    ).maxConnections;
  assert.deepEqual([most(), most('10'), most('5000')], [2000, 10, 5000]);
  for (const value of ['9', '0', '-1', '1e3', '10.5', '1000001', 'many'])
    assert.throws(
      () => most(value),
      /^OperatorError: --option: ".*" is not a whole number from 10 to 1000000$/,
      value,
    );
});
