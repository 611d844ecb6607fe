/** Values of settings: what their texts mean, wherever they stand. (What is wrong: settings-refusals.test.ts.) */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { listenAddress, resolverAddress, truth } from '../../../src/cli/settings/setting-values.ts';
import { readSettings } from '../../../src/cli/settings/settings.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const from = '--option';

test('a resolver is an IP address, with port 53 by default', () => {
  const cases: [text: string, meaning: string][] = [
    ['192.0.2.53', '192.0.2.53:53'],
    ['192.0.2.53:5353', '192.0.2.53:5353'],
    ['2001:db8::53', '[2001:db8::53]:53'],
    ['[2001:db8::53]', '[2001:db8::53]:53'],
    ['[::1]:5353', '[::1]:5353'],
  ];
  for (const [value, meaning] of cases) assert.equal(resolverAddress({ value, from }), meaning);
});

test('an address to listen on may leave the host out', () => {
  assert.deepEqual(listenAddress({ value: ':80', from }), { host: '0.0.0.0', port: 80 });
  assert.deepEqual(listenAddress({ value: '[::]:443', from }), { host: '::', port: 443 });
});

test('booleans accept true, 1, yes and on, or false, 0, no and off, and default to false', () => {
  for (const value of ['true', '1', 'Yes', 'ON']) assert.equal(truth({ value, from }), true);
  for (const value of ['false', '0', 'no', 'Off']) assert.equal(truth({ value, from }), false);
  assert.equal(truth(undefined), false);
});

test('the settings of ACME come from flags, the environment or the file, and are off without them', async (t) => {
  const dir = tempDir(t);
  const acme = async (
    flags: Parameters<typeof readSettings>[0],
    environment: Record<string, string> = {},
  ) => {
    const settings = await readSettings({ 'data-dir': dir, ...flags }, environment);
    const { acmeHttpListen, acmeTlsListen, resolver, acmeDrafts } = settings;
    return [acmeHttpListen?.port, acmeTlsListen?.port, resolver, acmeDrafts];
  };
  assert.deepEqual(await acme({}), [undefined, undefined, undefined, false]);
  const file =
    'acme_http_listen: 127.0.0.1:1080\nacme_tls_listen: 127.0.0.1:1443\nresolver: 192.0.2.1\nacme_drafts: true\n';
  writeFileSync(join(dir, 'vault.yaml'), file);
  assert.deepEqual(await acme({}), [1080, 1443, '192.0.2.1:53', true]);
  const environment = {
    VAULT_ACME_HTTP_LISTEN: '127.0.0.1:2080',
    VAULT_ACME_TLS_LISTEN: '127.0.0.1:2443',
    VAULT_RESOLVER: '192.0.2.2',
    VAULT_ACME_DRAFTS: 'false',
  };
  assert.deepEqual(await acme({}, environment), [2080, 2443, '192.0.2.2:53', false]);
  const flags = {
    'acme-http-listen': '127.0.0.1:3080',
    'acme-tls-listen': '127.0.0.1:3443',
    resolver: '192.0.2.3',
    'acme-drafts': true,
  };
  assert.deepEqual(await acme(flags, environment), [3080, 3443, '192.0.2.3:53', true]);
});
