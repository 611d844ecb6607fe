/** The form of a DNS provider is derived from the JSON Schema of its type. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import {
  type ConfigSchema,
  configFields,
  configValues,
} from '../../../assets/console/forms/config-schema.ts';
import { dnsProviderTypes } from '../../../src/dns/providers/provider-types.ts';

const schemaOf = (type: string) => {
  const { config } = dnsProviderTypes.get(type) ?? assert.fail(`no type ${type}`);
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

for (const type of dnsProviderTypes.keys())
  test(`credentials of ${type} are hidden while the person types`, () => {
    for (const { name, isSecret, isLong } of configFields(schemaOf(type)))
      if (/token$|secret|password/.test(name)) assert.ok(isSecret || isLong, name);
  });
