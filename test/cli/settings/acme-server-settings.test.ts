/** The settings of the ACME server: what their texts mean, and what is refused with a way out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AcmeServerSettings,
  type acmeServerOptions,
  acmeServerSettings,
} from '../../../src/cli/settings/acme-server-settings.ts';

type Name = keyof typeof acmeServerOptions;

function read(values: Partial<Record<Name, string>>): AcmeServerSettings {
  return acmeServerSettings((name) => {
    const value = values[name];
    return value === undefined ? undefined : { value, from: `--${name}` };
  });
}

test('without a setting, challenges are validated on the ports of the RFCs, and CAA is not checked', () => {
  const nothing = {
    ...{ allowed: [], forbidden: [], caaIdentities: [], termsOfService: undefined },
    ports: { http: 80, tls: 443 },
  };
  assert.deepEqual(read({}), nothing);
  assert.deepEqual(
    read({
      ...{ 'acme-validation-allow': 'none', 'acme-validation-forbid': 'none' },
      ...{ 'acme-caa-identity': 'none', 'acme-terms-of-service': 'none' },
    }),
    nothing,
  );
});

test('allowed addresses, forbidden networks, CAA identities and the terms of service are parsed', () => {
  const { allowed, forbidden, caaIdentities, termsOfService } = read({
    'acme-validation-allow': '127.0.0.1:80, [::1]:443',
    'acme-validation-forbid': '10.9.0.0/16,fd00::/8',
    'acme-caa-identity': 'CA.Example.com, ca2.example.com.',
    'acme-terms-of-service': 'https://ca.example.com/terms',
  });
  assert.deepEqual(
    allowed.map(({ network, port }) => `${network.text} ${port}`),
    ['127.0.0.1 80', '::1 443'],
  );
  assert.deepEqual(
    forbidden.map(({ text }) => text),
    ['10.9.0.0/16', 'fd00::/8'],
  );
  assert.deepEqual(caaIdentities, ['ca.example.com', 'ca2.example.com']);
  assert.equal(termsOfService, 'https://ca.example.com/terms');
});

test('invalid ACME server settings are rejected with the name of the setting', () => {
  for (const [name, value, complaint] of [
    [
      'acme-validation-allow',
      'localhost',
      /^OperatorError: --acme-validation-allow: "localhost" is not an address$/,
    ],
    [
      'acme-validation-allow',
      '0.0.0.0/0',
      /--acme-validation-allow: 0\.0\.0\.0\/0 would allow every address$/,
    ],
    ['acme-validation-forbid', '10.1.2.3/8', /--acme-validation-forbid: "10\.1\.2\.3\/8" is not a network$/],
    ['acme-validation-forbid', 'example.com', /is not a network$/],
    ['acme-caa-identity', 'ca', /--acme-caa-identity: "ca" is not the name of a CA$/],
    ['acme-caa-identity', '192.0.2.1', /is not the name of a CA$/],
    ['acme-caa-identity', '*.example.com', /is not the name of a CA$/],
    ['acme-terms-of-service', 'ca.example.com', /"ca\.example\.com" is not an http or https URL$/],
    ['acme-terms-of-service', 'javascript:alert(1)', /is not an http or https URL$/],
  ] as const) {
    assert.throws(() => read({ [name]: value }), complaint, value);
  }
});
