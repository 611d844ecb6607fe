/** Where challenges are validated: private networks by default, others as the settings say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseIpNetwork } from '../../src/net/ip-network.ts';
import { parseAllowedOutbound } from '../../src/net/outbound-addresses.ts';
import { validationGuard } from '../../src/net/validation-guard.ts';

function guard(allowed: readonly string[], forbidden: readonly string[]) {
  return validationGuard({
    allowed: allowed.flatMap((text) => parseAllowedOutbound(text) ?? []),
    forbidden: forbidden.flatMap((text) => parseIpNetwork(text) ?? []),
  });
}

test('private and public addresses are open by default', () => {
  const { target } = guard([], []);
  for (const address of ['10.1.2.3', '172.16.0.1', '192.168.1.1', 'fd12::1', '192.0.2.1', '2001:db8::1']) {
    assert.deepEqual([target(address, 80).host, target(address, 80).port], [address, 80]);
  }
});

test('a forbidden network is rejected in every notation, except for allowed addresses', () => {
  const { target } = guard(['10.9.0.1:80', '127.0.0.1'], ['10.9.0.0/16', 'fd00:9::/32']);
  for (const address of ['10.9.0.2', '::ffff:10.9.0.2', '64:ff9b::a09:2', 'fd00:9::1', '127.0.0.2']) {
    assert.throws(() => target(address, 80), /^ValidationRefusal: the vault does not validate at /, address);
  }
  assert.throws(
    () => target('10.9.0.1', 443),
    /in a network that a setting forbids; .*--acme-validation-allow 10\.9\.0\.1:443$/,
  );
  assert.equal(target('10.9.0.1', 80).host, '10.9.0.1');
  assert.equal(target('127.0.0.1', 443).host, '127.0.0.1');
  assert.equal(target('10.10.0.1', 80).host, '10.10.0.1');
});

test('target and lookup reject a host name in place of an address', () => {
  assert.throws(
    () => guard([], []).target('www.example.test', 80),
    /^Error: www\.example\.test is not an address$/,
  );
  assert.throws(
    () =>
      guard([], [])
        .target('10.0.0.1', 80)
        .lookup('x', {}, () => undefined),
    /is not an address$/,
  );
});
