/** The settings of endpoints: what their texts mean, what is rejected, and what the guard makes of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openVault } from '../../../src/cli/runtime/open-vault.ts';
import {
  type EndpointSettings,
  type endpointOptions,
  endpointSettings,
} from '../../../src/cli/settings/endpoint-settings.ts';
import { readSettings } from '../../../src/cli/settings/settings.ts';
import { outboundGuard } from '../../../src/net/outbound-guard.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { keptLog, settingsFor } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

type Name = keyof typeof endpointOptions;

function read(values: Partial<Record<Name, string>>): EndpointSettings {
  return endpointSettings((name) => {
    const value = values[name];
    return value === undefined ? undefined : { value, from: `--${name}` };
  });
}

const guardOf = ({ allowed, forbidden }: EndpointSettings) =>
  outboundGuard(allowed, undefined, { setting: 'endpoint-allow', forbidden });

test('without a setting, and with none, no exceptions are made', () => {
  for (const value of [undefined, 'none']) {
    const values = value === undefined ? {} : { 'endpoint-allow': value, 'endpoint-forbid': value };
    assert.deepEqual(read(values), { allowed: [], forbidden: [] });
  }
});

test('allowed addresses and forbidden networks are parsed', () => {
  const { allowed, forbidden } = read({
    'endpoint-allow': '127.0.0.1:443, [::1]:25,10.9.1.0/24',
    'endpoint-forbid': '10.9.0.0/16,fd00::/8',
  });
  assert.deepEqual(
    allowed.map(({ network, port }) => `${network.text} ${port}`),
    ['127.0.0.1 443', '::1 25', '10.9.1.0/24 undefined'],
  );
  assert.deepEqual(
    forbidden.map(({ text }) => text),
    ['10.9.0.0/16', 'fd00::/8'],
  );
});

test('invalid settings are rejected with the name of the setting', () => {
  for (const [name, value, complaint] of [
    ['endpoint-allow', 'localhost', /^OperatorError: --endpoint-allow: "localhost" is not an address$/],
    ['endpoint-allow', '127.0.0.1:0', /--endpoint-allow: "127\.0\.0\.1:0" is not an address$/],
    ['endpoint-allow', '0.0.0.0/0', /--endpoint-allow: 0\.0\.0\.0\/0 would allow every address$/],
    [
      'endpoint-forbid',
      '10.1.2.3/8',
      /^OperatorError: --endpoint-forbid: "10\.1\.2\.3\/8" is not a network$/,
    ],
    ['endpoint-forbid', 'example.com', /--endpoint-forbid: "example\.com" is not a network$/],
    ['endpoint-forbid', '10.0.0.0/8,', /--endpoint-forbid: "" is not a network$/],
  ] as const) {
    assert.throws(() => read({ [name]: value }), complaint, value);
  }
});

const verdicts: readonly (readonly [address: string, port: number, reason: RegExp | undefined])[] = [
  ['10.8.0.1', 443, undefined],
  [
    '10.9.0.1',
    443,
    /^10\.9\.0\.1 is an address in a network that a setting forbids; allow it with --endpoint-allow 10\.9\.0\.1:443 /,
  ],
  ['::ffff:10.9.0.1', 443, /a network that a setting forbids/],
  ['64:ff9b::10.9.0.1', 443, /a network that a setting forbids/],
  ['10.9.1.1', 443, undefined],
  ['fd00::1', 443, /an address in a network that a setting forbids/],
  ['127.0.0.1', 443, undefined],
  [
    '127.0.0.1',
    444,
    /a loopback address; allow it with --endpoint-allow 127\.0\.0\.1:444 \(in vault\.yaml: endpoint_allow: "127\.0\.0\.1:444"\)$/,
  ],
  ['169.254.169.254', 80, /metadata/],
  ['192.0.2.1', 25, undefined],
];
for (const [address, port, reason] of verdicts) {
  test(`a check of ${address} at port ${port} is ${reason === undefined ? 'allowed' : 'refused'} by the settings`, () => {
    const guard = guardOf(
      read({ 'endpoint-allow': '127.0.0.1:443,10.9.1.0/24', 'endpoint-forbid': '10.9.0.0/16,fd00::/8' }),
    );
    if (reason === undefined) assert.equal(guard.target(address, port).host, address);
    else assert.throws(() => guard.target(address, port), { message: reason });
  });
}

test('a vault uses the settings for its endpoints, and those of other connections do not count', async (t) => {
  const dataDir = tempDir(t);
  const endpoints = read({ 'endpoint-allow': '127.0.0.1:443', 'endpoint-forbid': '192.0.2.0/24' });
  const settings = { ...settingsFor(dataDir), database: undefined, endpoints };
  const { vault, close } = await openVault(settings, new TestWorld(), 'create', keptLog(), undefined, {
    databaseNow: undefined,
  });
  t.after(close);
  assert.equal(vault.endpointGuard.target('127.0.0.1', 443).port, 443);
  assert.throws(() => vault.endpointGuard.target('127.0.0.1', 80), /--endpoint-allow/);
  assert.throws(() => vault.endpointGuard.target('192.0.2.7', 443), /a setting forbids/);
  assert.equal(vault.guard.target('127.0.0.1', 80).port, 80);
  assert.equal(vault.guard.target('192.0.2.7', 443).port, 443);
});

test('the environment variables of the settings are read', async (t) => {
  const { endpoints } = await readSettings(
    { 'data-dir': tempDir(t) },
    { VAULT_ENDPOINT_ALLOW: '127.0.0.1', VAULT_ENDPOINT_FORBID: '10.0.0.0/8' },
  );
  assert.deepEqual(
    [endpoints.allowed.map(({ network }) => network.text), endpoints.forbidden.map(({ text }) => text)],
    [['127.0.0.1'], ['10.0.0.0/8']],
  );
});
