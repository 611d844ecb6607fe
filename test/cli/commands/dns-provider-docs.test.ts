/**
 * docs/reference/dns-providers.md: its table of DNS providers names every type and every field of their secret files,
 * and no other type.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { z } from 'zod';
import { dnsProviderTypes } from '../../../src/dns/providers/provider-types.ts';

const doc = readFileSync(new URL('../../../docs/reference/dns-providers.md', import.meta.url), 'utf8');
const rows = new Map(
  [...doc.matchAll(/^\| `([a-z0-9][a-z0-9-]*)` \|(.*)$/gm)].map(([, type = '', row = '']) => [type, row]),
);

/** What may be given to types for an HTTP API, and is of use for tests and proxies only. */
const rarelyNeeded = ['base_url', 'login_url', 'token_uri'];

test('the table lists every DNS provider type once', () => {
  assert.deepEqual([...rows.keys()], [...dnsProviderTypes.keys()]);
});

for (const [name, { config }] of dnsProviderTypes) {
  test(`the row of ${name} lists each field of its secret file`, () => {
    const { properties = {} } = z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' });
    const fields = Object.keys(properties).filter((field) => !rarelyNeeded.includes(field));
    for (const field of fields) assert.match(rows.get(name) ?? '', new RegExp(`\`${field}\``));
  });
}
