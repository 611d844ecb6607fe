/** The document of `vault apply` as YAML has it: names stay the words that were written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDesiredDocument } from '../../../../src/cli/commands/desired-state/desired-document.ts';

test('names that YAML reads as numbers, booleans, dates or null stay strings, also with a merged anchor', async () => {
  const names = ['007', '1.10', '1e3', '0x1f', 'null', 'true', '2030-01-31'];
  const lines = names.map((name) => `  ${name}: {<<: *usual, certificates: ["*"]}\n`);
  const text = `version: 1\napi_keys:\n  first: &usual {scopes: [certificates:read], certificates: ["*"]}\n${lines.join('')}`;
  const { state } = await readDesiredDocument(text, 'test.yaml');
  assert.deepEqual([...state.api_keys.keys()].sort(), ['first', ...names].sort());
});

test('the names 7 and 007 are distinct, and a duplicate name is rejected', async () => {
  const key = '{scopes: [certificates:read], certificates: ["*"]}';
  const { state } = await readDesiredDocument(
    `version: 1\napi_keys: {7: ${key}, 007: ${key}}\n`,
    'test.yaml',
  );
  assert.deepEqual([...state.api_keys.keys()], ['7', '007']);
  await assert.rejects(
    readDesiredDocument(`version: 1\napi_keys:\n  7: ${key}\n  7: ${key}\n`, 'test.yaml'),
    /test\.yaml:4: duplicate key/,
  );
});

test('names that are special in JavaScript or YAML are accepted like any other', async () => {
  const { state } = await readDesiredDocument(
    `version: 1
certificates:
  __proto__: {domains: [a.test]}
  constructor: {domains: [b.test]}
api_keys:
  "<<": {scopes: [certificates:read], certificates: [__proto__]}
`,
    'test.yaml',
  );
  assert.deepEqual([...state.certificates.keys()], ['__proto__', 'constructor']);
  assert.deepEqual([...state.api_keys.keys()], ['<<']);
  assert.equal({}.toString(), '[object Object]');
});

test('a section that is not a mapping is rejected with a hint', async () => {
  for (const section of ['[web]', 'web', '7']) {
    await assert.rejects(
      readDesiredDocument(`version: 1\ncertificates: ${section}\n`, 'test.yaml'),
      /test\.yaml:2: certificates: write a mapping of names to settings/,
    );
  }
});
