/** The document's form: its JSON Schema, which editors use, and its example say what the vault takes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { desiredStateSchema, readDesiredState } from '../../../src/domain/desired-state/desired-state.ts';

const docs = (name: string) => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');

const published = JSON.parse(docs('vault.schema.json')) as object;
const example = docs('desired.yaml');

test('docs/vault.schema.json is what "vault apply --schema" prints', () => {
  assert.deepEqual(published, desiredStateSchema());
});

test('docs/desired.yaml is valid for the schema and the vault, and references the schema for editors', () => {
  const validate = new Ajv2020({ strict: false }).compile(published);
  assert.equal(validate(parse(example)), true, JSON.stringify(validate.errors));
  assert.ok('state' in readDesiredState(parse(example)));
  assert.match(example, /^# yaml-language-server: \$schema=vault\.schema\.json\n/);
});

test('documents that the JSON Schema rejects are also rejected by the vault', () => {
  const validate = new Ajv2020({ strict: false }).compile(published);
  const usual = { version: 1, certificates: { web: { domains: ['a.test'] } } };
  assert.equal(validate(usual), true);
  for (const wrong of [
    {},
    { version: 2 },
    { ...usual, administrators: {} },
    { ...usual, certificates: { web: {} } },
    { ...usual, certificates: { web: { domains: [] } } },
    { ...usual, certificates: { web: { domains: ['a.test'], key_type: 'dsa' } } },
    { ...usual, certificates: { web: { domains: ['a.test'], name: 'web' } } },
    { ...usual, dns_providers: { one: { type: 'manual', zones: ['a.test'], secret: 'a literal one' } } },
    { ...usual, api_keys: { www: { scopes: ['all'], certificates: ['*'] } } },
    { ...usual, issuers: { 'a b': {} } },
  ]) {
    assert.equal(validate(wrong), false, JSON.stringify(wrong));
    assert.ok('issues' in readDesiredState(wrong), JSON.stringify(wrong));
  }
});
