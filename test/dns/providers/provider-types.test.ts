/** The table of types, and secret files: what is wrong with one is told without any of its values. */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import { DnsProviderError, type DnsProviderType } from '../../../src/dns/dns-provider.ts';
import { dnsProviderTypes, readProviderConfig } from '../../../src/dns/providers/provider-types.ts';
import { fakeContext } from '../../harness/dns/fake-provider.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';

test('the table has every type by its name, with a title', () => {
  assert.deepEqual(
    [...dnsProviderTypes.keys()],
    [
      ...['rfc2136', 'exec', 'webhook', 'acme-dns', 'manual', 'lexicon', 'acme-sh'],
      ...[
        'cloudflare',
        'route53',
        'azure-dns',
        'google-cloud-dns',
        'digitalocean',
        'hetzner',
        'ovh',
        'desec',
      ],
    ],
  );
  for (const [name, type] of dnsProviderTypes) {
    assert.equal(type.type, name);
    assert.match(type.title, /\w/);
  }
});

test('a configuration can be stored as JSON and read again', async () => {
  const webhook = typeNamed('webhook');
  const config = await readProviderConfig(webhook, 'url: https://hook.test\nusername: u\npassword: p\n');
  const again: unknown = JSON.parse(JSON.stringify(config));
  assert.deepEqual(webhook.config.parse(again), config);
  webhook.create(again, fakeContext());
});

test('an invalid configuration is also rejected when the provider is created', () => {
  assert.throws(
    () => typeNamed('webhook').create({ url: 's3cret' }, fakeContext()),
    (error: Error) => {
      assert(error instanceof DnsProviderError);
      assert.match(error.message, /^invalid settings for webhook: url must be an https:\/\/ URL/);
      return true;
    },
  );
});

function typeNamed(name: string): DnsProviderType {
  const type = dnsProviderTypes.get(name);
  assert(type !== undefined);
  return type;
}

const example: DnsProviderType = {
  ...{ type: 'example', title: 'for tests', plain: 'api_token' },
  config: z.strictObject({
    api_token: z.string().min(5),
    zone_id: z.string().optional(),
    ttl: z.int().default(60),
    nested: z.strictObject({ inner: z.string() }).optional(),
  }),
  create: () => ({ present: async () => undefined, remove: async () => undefined }),
};
const unplain: DnsProviderType = { ...example, config: z.strictObject({ a: z.string(), b: z.string() }) };
delete (unplain as { plain?: string }).plain;

suite('a secret file', () => {
  const good: Readonly<Record<string, string>> = {
    YAML: 'api_token: t0ken\nttl: 60\n',
    'YAML with comments and CRLF line ends': '# mine\r\napi_token: "t0ken" # yes\r\n',
    JSON: '{"api_token":"t0ken"}',
    'JSON without spaces, on several lines': '{\n"api_token":"t0ken"\n}',
    'one line': 't0ken',
    'one line with a line break and surrounding spaces': '  t0ken \r\n',
  };
  for (const [what, text] of Object.entries(good)) {
    test(`with ${what} is read`, async () => {
      assert.deepEqual(await readProviderConfig(example, text), { api_token: 't0ken', ttl: 60 });
    });
  }

  test('as JSON of 1 MiB with unknown keys is rejected with a bounded list of errors', async () => {
    const keys = Object.fromEntries(Array.from({ length: 90_000 }, (_, index) => [`a${index}`, 1]));
    const message = await readProviderConfig(example, JSON.stringify({ api_token: 't0ken', ...keys })).then(
      () => assert.fail('it was taken'),
      (error: Error) => error.message,
    );
    assert.match(message, / is unknown; and 89980 more$/);
    assert.ok(message.length < 2000);
  });

  test('of one line accepts any token without spaces', async () => {
    for (const token of ['1234567', 'a:b:c#d', '"quoted"', '[x]yz', '-----', 'null!', 'x=y==']) {
      assert.deepEqual(await readProviderConfig(example, token), { api_token: token, ttl: 60 });
    }
  });

  const bad: readonly (readonly [string, string, string])[] = [
    ['', 'no content', 'invalid settings for example: api_token is missing'],
    ['zone_id: s3cret', 'a missing key', 'invalid settings for example: api_token is missing'],
    [
      'api_token: s3cret\nfoo: s3cret\nbar_Baz: s3cret',
      'unknown keys',
      'invalid settings for example: foo is unknown; bar_Baz is unknown',
    ],
    [
      'api_token: s3cret\nnested: {inner: x, s3cret-9: x}',
      'an unknown key that may be a value',
      'invalid settings for example: nested.a key that is not a name is unknown',
    ],
    [
      'api_token: s3cret\nttl: s3cret',
      'a value of the wrong type',
      'invalid settings for example: ttl must be a number',
    ],
    ['api_token:s3cret', 'no space after the key', 'the secret file needs a space after "api_token:"'],
    ['api_token=s3cret', 'an equals sign', 'the secret file needs a space after "api_token:"'],
    [
      'two s3cret words',
      'text of several words',
      'the secret file must be a mapping of names to values, or a single line with the api_token',
    ],
    [
      '- s3cret\n- s3cret',
      'a list',
      'the secret file must be a mapping of names to values, or a single line with the api_token',
    ],
    [
      'api_token: s3cret\n  x: "s3cret',
      'invalid YAML',
      'the secret file is neither valid YAML nor JSON: BLOCK_AS_IMPLICIT_KEY in line 1',
    ],
    [
      'api_token: s3cret\napi_token: s3cret',
      'the same key twice',
      'the secret file is neither valid YAML nor JSON: DUPLICATE_KEY in line 2',
    ],
    [
      'api_token: *s3cret\n',
      'an unresolved alias',
      'the secret file has unresolved YAML aliases, or too many of them',
    ],
    [
      'api_token: s3cret\n---\napi_token: s3cret',
      'two documents',
      'the secret file is neither valid YAML nor JSON: MULTIPLE_DOCS in line 2',
    ],
  ];
  for (const [text, what, message] of bad) {
    test(`with ${what} is rejected`, async () => {
      await assert.rejects(readProviderConfig(example, text), { name: 'DnsProviderError', message });
    });
  }

  test('of one line is rejected if the type has no plain form', async () => {
    await assert.rejects(readProviderConfig(unplain, 's3cret'), {
      message: 'the secret file must be a mapping of names to values',
    });
  });

  test('with a mapping as a key is rejected without showing it in a warning', async (t) => {
    const warnings = t.mock.method(process, 'emitWarning', () => undefined);
    await assert.rejects(readProviderConfig(unplain, '? {x: s3cret}\n: b\n'), (error: Error) => {
      assert.doesNotMatch(error.message, /s3cret/);
      return true;
    });
    assert.equal(warnings.mock.callCount(), 0);
  });

  test('with exponentially expanding aliases is rejected', async () => {
    const lines = ['a: &a [x, x, x, x, x, x, x, x, x]'];
    for (let index = 1; index < 12; index += 1) {
      const before = index === 1 ? 'a' : `a${index - 1}`;
      lines.push(`a${index}: &a${index} [${Array(9).fill(`*${before}`).join(', ')}]`);
    }
    await assert.rejects(
      readProviderConfig(unplain, lines.join('\n')),
      /unresolved YAML aliases, or too many/,
    );
  });

  test('never shows its values in an error, for any provider type', async () => {
    const marker = 's3cret-0f-mine';
    const value = fc.oneof(
      fc.constant(marker),
      fc.constant([marker]),
      fc.constant({ [marker]: marker }),
      fc.constant(`http://${marker}`),
      fc.integer(),
    );
    const key = fc.constantFrom(
      'url',
      'username',
      'password',
      'server',
      'secret',
      'command',
      'api_token',
      marker,
    );
    const mapping = fc.dictionary(key, value).map((one) => JSON.stringify(one));
    const text = fc.oneof(
      mapping,
      fc.string().map((noise) => `${noise}${marker}`),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...dnsProviderTypes.values()), text, async (type, file) => {
        try {
          await readProviderConfig(type, file);
        } catch (error) {
          assert(error instanceof DnsProviderError, String(error));
          assert(!error.message.includes(marker), error.message);
        }
      }),
      fuzzRuns(500),
    );
  });
});
