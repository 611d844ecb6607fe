/** Secrets: no way of showing a value shows this one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, inspect } from 'node:util';
import pino from 'pino';
import { Secret } from '../../src/base/secret.ts';

const value = 'correct horse battery staple';

type AnySecret = Secret<string> | Secret<Buffer>;

const showings: Record<string, (secret: AnySecret) => string> = {
  'a template string': (secret) => `${secret}`,
  'String()': (secret) => String(secret),
  'joining with a string': (secret) => `${'key: '}${[secret].join()}`,
  JSON: (secret) => JSON.stringify({ secret, list: [secret] }),
  'inspect in full depth': (secret) => inspect({ secret }, { depth: null, showHidden: true }),
  'inspect without custom functions': (secret) => inspect(secret, { customInspect: false, showHidden: true }),
  'the formats of console.log': (secret) => format('%s %o %O %j', secret, secret, secret, secret),
  'console.log without a format': (secret) => format(secret, { secret }),
  'an error message': (secret) => new Error(`no access with ${secret}`, { cause: secret }).message,
  'an inspected error': (secret) => inspect(new Error('no access', { cause: { secret } })),
  'its own properties': (secret) => JSON.stringify(Object.entries({ ...secret })),
  'its own keys': (secret) => Reflect.ownKeys(secret).join(),
  'a line of the log': (secret) => {
    let line = '';
    pino({}, { write: (text) => (line += text) }).info(
      { secret, err: new Error('x', { cause: secret }) },
      'x',
    );
    return line;
  },
};

const forms = [
  value,
  Buffer.from(value).toString('hex'),
  Buffer.from(value).toString('base64'),
  '99,111,114',
];

for (const [showing, show] of Object.entries(showings)) {
  test(`a secret is not shown by ${showing}`, () => {
    for (const secret of [new Secret(value), new Secret(Buffer.from(value))]) {
      const shown = show(secret);
      for (const form of forms) assert.equal(shown.includes(form), false, shown);
    }
  });
}

test('a secret is shown as [secret]', () => {
  const secret = new Secret(value);
  assert.equal(`${secret}`, '[secret]');
  assert.equal(JSON.stringify({ secret }), '{"secret":"[secret]"}');
  assert.equal(inspect(secret), '[secret]');
  assert.equal(structuredClone({ ...secret }) instanceof Secret, false);
});

test('expose gives the value itself', () => {
  const bytes = Buffer.from(value);
  assert.equal(new Secret(value).expose(), value);
  assert.equal(new Secret(bytes).expose(), bytes);
});
