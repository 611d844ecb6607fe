/** Secrets in the text of programs and services: hidden whole, in part, over several lines and encoded. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { withoutSecrets } from '../../src/net/without-secrets.ts';

const secret = 'S3CRET/with+signs &0123456789';
const block = [
  '-----BEGIN KEY-----',
  'bGluZSBvbmUgb2YgYSBrZXkgZmlsZQ',
  'c2hvcnQ',
  '-----END KEY-----',
  '',
].join('\n');
const base64 = (text: string) => Buffer.from(text).toString('base64');

const cases: Readonly<Record<string, readonly [text: string, secrets: readonly string[], shown: string]>> = {
  'a value': [`token ${secret}.`, [secret], 'token [secret].'],
  'a value that ends with a line break': [`token ${secret}.`, [`${secret}\n`], 'token [secret].'],
  'two values': ['abcd and efgh', ['abcd', 'efgh'], '[secret] and [secret]'],
  'a value that contains another': ['abcdefgh', ['abcd', 'abcdefgh'], '[secret]'],
  'a multi-line value': [`got ${block}end`, [block], 'got [secret]\nend'],
  'a multi-line value with CRLF': [`got ${block.replaceAll('\n', '\r\n')}`, [block], 'got [secret]\r\n'],
  'one line of a multi-line value': ['invalid line: c2hvcnQ', [block], 'invalid line: [secret]'],
  'a line with indentation': [
    'invalid line: password',
    ['user: a\n  password  \n'],
    'invalid line: [secret]',
  ],
  'a URL-encoded value': [`GET /?token=${encodeURIComponent(secret)}&a`, [secret], 'GET /?token=[secret]&a'],
  'a form-encoded value': [`a=b&${new URLSearchParams({ t: secret })}&c`, [secret], 'a=b&t=[secret]&c'],
  JSON: [`{"key":${JSON.stringify(block)}}`, [block], '{"key":"[secret]"}'],
  base64: [`got ${base64(secret)}`, [secret], 'got [secret]'],
  'base64 over several lines': [
    `got ${base64(block).replaceAll(/.{30}/g, '$&\n')}.`,
    [block],
    'got [secret].',
  ],
  'base64 for URLs': [`got ${Buffer.from('???>>>~~').toString('base64url')}`, ['???>>>~~'], 'got [secret]'],
  'the end of Basic credentials': [`Basic ${base64('me:t0ps3cret')}`, ['t0ps3cret'], 'Basic bWU6[secret]'],
  'credentials after another byte': [`Basic ${base64('a:t0ps3cret')}`, ['t0ps3cret'], 'Basic YTp[secret]'],
  'a part of 16 characters': [`got ${secret.slice(3, 19)}…`, [secret], 'got [secret]…'],
  'a part of 15 characters': [`got ${secret.slice(3, 18)}…`, [secret], `got ${secret.slice(3, 18)}…`],
  'half a surrogate pair': ['got \ud800abcd', ['\ud800abcd'], 'got [secret]'],
  'a value of 3 characters': ['cat and catalog', ['cat'], 'cat and catalog'],
  'no values': ['as it is\n', ['', ' \n '], 'as it is\n'],
  'no text': ['', [secret], ''],
  'secrets of more than 32 KiB': ['anything', ['x'.repeat(40_000)], '[secret]'],
};

suite('withoutSecrets', () => {
  for (const [name, [text, secrets, shown]] of Object.entries(cases)) {
    test(`handles ${name}`, () => assert.equal(withoutSecrets(text, secrets), shown));
  }
});

test('no 16 characters of a secret are shown, wherever the text begins', () => {
  for (const text of [
    secret,
    base64(`:${secret}`),
    JSON.stringify(block).slice(1),
    encodeURIComponent(block),
  ]) {
    for (let start = 0; start < text.length; start += 1) {
      const shown = withoutSecrets(`${text.slice(start)} end`, [secret, block]);
      assert.match(shown, /^(.{0,15}|.?\[secret\])"? end$/);
    }
  }
});
