/** Templates of webhooks: what they may say, and that no value changes the form of the body. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { realWorld } from '../../src/base/world.ts';
import type { Message } from '../../src/channels/channel.ts';
import { webhookChannel } from '../../src/channels/webhook-channel.ts';
import { placeholders, templateProblem } from '../../src/channels/webhook-template.ts';
import { loopbackGuard, loopbackOutbound } from '../harness/loopback-guard.ts';
import { fakeChatApi } from '../harness/notifications/fake-chat-api.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const message: Message = {
  ...{
    id: 'msg_1',
    type: 'renewal.failed',
    timestamp: '2026-11-21T12:00:00Z',
    subject: 'web: renewal failed',
  },
  text: 'It said: "no" \\ {{id}} <&> $& \u0000é\n\n-- \nCertificate Vault\n',
  data: { certificate: 'web' },
};
const context = { world: realWorld, outbound: loopbackOutbound, guard: loopbackGuard, channelKey: 'v' };

suite('the template of a webhook', () => {
  const said = 'It said: "no" \\ {{id}} <&> $& \u0000é';
  const cases: [type: string | undefined, template: string, body: string][] = [
    [
      undefined,
      '{"t": "{{subject}} ({{ severity }})", "m": "{{message}}", "c": ["{{certificate}}"], "l": "{{link}}"}',
      `{"t": "web: renewal failed (error)", "m": ${JSON.stringify(said)}, "c": ["web"], "l": ""}`,
    ],
    [
      'text/plain',
      '{{event}} {{status}} {{alarm}}: {{message}}',
      `renewal.failed firing v/certificate/web: ${said}`,
    ],
    [
      'application/x-www-form-urlencoded',
      'text={{message}}&id={{id}}',
      `text=${encodeURIComponent(said)}&id=msg_1`,
    ],
    [
      'application/xml',
      '<m>{{message}}</m>',
      '<m>It said: &quot;no&quot; \\ {{id}} &lt;&amp;&gt; $&amp; \u0000é</m>',
    ],
    ['application/vnd.api+json', '{"at": "{{timestamp}}"}', '{"at": "2026-11-21T12:00:00Z"}'],
  ];
  for (const [content_type, template, body] of cases) {
    test(`is the body, with values encoded for ${content_type ?? 'JSON'}`, async (t) => {
      const api = await fakeChatApi(t);
      const config = { url: `${api.origin}/x`, secret, template, ...(content_type && { content_type }) };
      const settings = webhookChannel.config.parse(config);
      await webhookChannel.create(settings, context).send(message, new AbortController().signal);
      assert.equal(api.calls[0]?.body, body);
      assert.equal(api.calls[0]?.headers['content-type'], content_type ?? 'application/json');
      assert.match(String(api.calls[0]?.headers['webhook-signature']), /^v1,/);
    });
  }

  test('is rejected if it has an unknown placeholder, is invalid JSON, or is empty or too large', () => {
    const wrong: [template: string, type: string, words: RegExp][] = [
      [
        '{"a": "{{certificat}}"}',
        'application/json',
        /unknown placeholder \{\{certificat\}\}; use id, event, /,
      ],
      ['{"a": "{{constructor}}"}', 'application/json', /unknown placeholder/],
      ['{"a": "{{#if x}}"}', 'application/json', /\{\{ that begins no placeholder/],
      ['{"a": {{id}}}', 'application/json', /is not JSON; put placeholders inside quotes/],
      ['{"a": "\\{{id}}"}', 'application/json', /is not JSON/],
      ['{"a": "\\u{{id}}{{id}}{{id}}{{id}}"}', 'application/json', /is not JSON/],
      ['hello {{id}}', 'application/json', /is not JSON/],
      ['{{ID}}', 'text/plain', /\{\{ that begins no placeholder/],
    ];
    for (const [template, type, words] of wrong) {
      assert.match(templateProblem(template, type) ?? '', words, template);
      const parsed = webhookChannel.config.safeParse({
        ...{ url: 'https://a.test', secret, template, content_type: type },
      });
      assert.equal(parsed.success, false);
    }
    const valid = { url: 'https://a.test', secret, template: '"{{id}}"' };
    assert(webhookChannel.config.safeParse(valid).success);
    for (const one of [
      { template: `"${'x'.repeat(20_000)}"` },
      { template: '' },
      { content_type: 'text/plain\r\nX: y' },
      { content_type: 'text/plain', template: undefined },
    ]) {
      assert(
        !webhookChannel.config.safeParse({ ...valid, ...one }).success,
        JSON.stringify(one).slice(0, 80),
      );
    }
  });

  test('can contain each placeholder', () => {
    for (const name of placeholders)
      assert.equal(templateProblem(`"{{${name}}}"`, 'application/json'), undefined);
  });

  test('limits {{message}} to 8192 characters', async (t) => {
    const api = await fakeChatApi(t);
    const settings = { url: `${api.origin}/x`, secret, template: '"{{message}}"' };
    const huge = { ...message, text: '😀'.repeat(100_000) };
    await webhookChannel.create(settings, context).send(huge, new AbortController().signal);
    assert.equal(JSON.parse(api.calls[0]?.body ?? '').length, 8192);
  });
});
