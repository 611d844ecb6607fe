/** The forms of DNS providers and deploy targets are derived from the JSON Schemas of their types. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import {
  type ConfigSchema,
  configFields,
  configValues,
} from '../../../assets/console/forms/config-schema.ts';
import { dnsProviderTypes } from '../../../src/dns/providers/provider-types.ts';
import { targetTypes } from '../../../src/targets/target-types.ts';

const schemaOf = (type: string) => {
  const { config } = dnsProviderTypes.get(type) ?? targetTypes.get(type) ?? assert.fail(`no type ${type}`);
  return z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' }) as ConfigSchema;
};

test('required fields come first, and credentials are hidden', () => {
  const fields = configFields(schemaOf('azure-dns'));
  assert.deepEqual(
    fields.slice(0, 6).map(({ label, isRequired, isSecret }) => [label, isRequired, isSecret]),
    [
      ['Tenant ID', true, false],
      ['Client ID', true, false],
      ['Client secret', true, true],
      ['Subscription ID', true, false],
      ['Resource group', true, false],
      ['Zone name', false, false],
    ],
  );
});

test('values are converted to numbers, booleans and text, and empty fields are left out', () => {
  const fields = configFields(schemaOf('rfc2136'));
  const typed = { server: ' ns1.example.com ', ttl: '120', unsigned: 'true', secret: '' };
  assert.deepEqual(configValues(fields, typed), { server: 'ns1.example.com', unsigned: true, ttl: 120 });
});

test('fields show choices and defaults', () => {
  const fields = configFields(schemaOf('rfc2136'));
  const algorithm = fields.find(({ name }) => name === 'algorithm');
  assert.ok(algorithm?.choices?.includes('hmac-sha256'));
  assert.equal(algorithm?.hint, 'Default: hmac-sha256');
  assert.equal(configFields(schemaOf('google-cloud-dns'))[0]?.isLong, true);
});

test('settings within another one are fields of a group, with its hint, among the required ones', () => {
  const fields = configFields(schemaOf('ssh'));
  const names = fields.map(({ name }) => name);
  assert.deepEqual(names.slice(0, 5), ['host', 'user', 'host_key', 'files.fullchain', 'files.private_key']);
  const file = fields.find(({ name }) => name === 'files.private_key');
  assert.partialDeepStrictEqual(file, { label: 'Private key', isSecret: false, isLong: false });
  assert.equal(file?.group?.label, 'Files');
  assert.match(file?.group?.hint ?? '', /^Absolute paths; /);
});

test('values of a group are in an object, which is there without any of them if the setting is required', () => {
  const fields = configFields(schemaOf('ssh'));
  assert.deepEqual(configValues(fields, {}), { files: {} });
  const typed = { host: 'web1', port: '2222', 'files.chain': '/a.pem', 'files.combined': ' /b.pem ' };
  const files = { chain: '/a.pem', combined: '/b.pem' };
  assert.deepEqual(configValues(fields, typed), { host: 'web1', files, port: 2222 });
});

test('fields of a deploy target have hints with descriptions, choices and defaults', () => {
  const hintOf = (type: string, name: string) =>
    configFields(schemaOf(type)).find((field) => field.name === name)?.hint;
  assert.equal(hintOf('kubernetes', 'secret'), 'The name of a secret. Default: {certificate}');
  assert.equal(hintOf('fortigate', 'use_for'), 'Any of admin, ssl-vpn');
  assert.equal(hintOf('ssh', 'user'), undefined);
});

for (const type of [...dnsProviderTypes.keys(), ...targetTypes.keys()])
  test(`credentials of ${type} are hidden while the person types`, () => {
    for (const { name, isSecret, isLong, hint } of configFields(schemaOf(type))) {
      const isCredential = /token$|secret|pass(?:word|phrase)/.test(name) && !hint?.includes('Default: ');
      if (isCredential) assert.ok(isSecret || isLong, name);
    }
  });
