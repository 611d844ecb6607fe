/**
 * Chat and paging channels against a fake of each API: what is sent, how it is escaped and bounded, and what failures
 * mean.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { hour, second } from '../../src/base/duration.ts';
import { realWorld } from '../../src/base/world.ts';
import { ChannelError, type Message } from '../../src/channels/channel.ts';
import { channelTypes } from '../../src/channels/channel-types.ts';
import { cut } from '../../src/channels/chat-message.ts';
import { loopbackGuard, loopbackOutbound } from '../harness/loopback-guard.ts';
import { type FakeChatApi, fakeChatApi, jsonAnswer } from '../harness/notifications/fake-chat-api.ts';

const publicUrl = 'https://vault.example.test';
const context = {
  ...{ world: realWorld, outbound: loopbackOutbound, guard: loopbackGuard },
  ...{ publicUrl, channelKey: 'vault-1' },
};
const { signal } = new AbortController();
const link = `${publicUrl}/certificates/web`;
const key32 = 'k'.repeat(32);

/** Settings and the path that is called, by type. */
const services: Record<string, { settings: (origin: string) => object; path: string }> = {
  slack: { settings: (url) => ({ url: `${url}/services/T0/B0/s3cret` }), path: '/services/T0/B0/s3cret' },
  teams: { settings: (url) => ({ url: `${url}/workflows/1?sig=s3cret` }), path: '/workflows/1?sig=s3cret' },
  discord: { settings: (url) => ({ url: `${url}/api/webhooks/1/s3cret` }), path: '/api/webhooks/1/s3cret' },
  telegram: {
    settings: (url) => ({ url: `${url}/`, token: '1:s3cret', chat: '-1001', thread: 7 }),
    path: '/bot1:s3cret/sendMessage',
  },
  ntfy: { settings: (url) => ({ url, topic: 'vault', token: 'tk_s3cret' }), path: '/' },
  gotify: { settings: (url) => ({ url: `${url}/gotify/`, token: 's3cret' }), path: '/gotify/message' },
  pagerduty: { settings: (url) => ({ url, routing_key: key32 }), path: '/v2/enqueue' },
  opsgenie: { settings: (url) => ({ url, api_key: 's3cret' }), path: '/v2/alerts' },
};
const names = Object.keys(services);

const failed: Message = {
  id: 'msg_1',
  type: 'renewal.failed',
  timestamp: '2026-11-21T12:00:00Z',
  subject: 'web: renewal failed',
  text: 'Renewal of certificate web failed.\n\n  Error: no <b>A</b> & ```@everyone``` [x](http://evil.test)\n\n  vault certificate show --name web\n\n-- \nCertificate Vault\n',
  data: { certificate: 'web', error: 'no' },
};
const recovered: Message = {
  ...failed,
  ...{ id: 'msg_2', type: 'renewal.recovered', subject: 'web: renewed again', text: 'Renewed.\n' },
};
const huge: Message = {
  ...failed,
  subject: `${'<&>*é"'.repeat(1000)}`,
  text: `${'<&>`é"😀\n'.repeat(20_000)}`,
};

type Json = Record<string, never>;

async function sent(t: TestContext, type: string, message: Message, over: object = {}) {
  const api = await fakeChatApi(t);
  await send(api, type, message, over);
  const [got] = api.calls;
  assert(got);
  return { ...got, json: JSON.parse(got.body) as Json };
}

async function send(api: FakeChatApi, type: string, message: Message, over: object = {}) {
  const channel = channelTypes.get(type);
  assert(channel);
  const config = services[type]?.settings(api.origin);
  assert.equal(channel.target(config), api.origin, 'lists show the origin only');
  await channel.create(config, { ...context, ...over }).send(message, signal);
}

async function refusal(work: Promise<unknown>): Promise<ChannelError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert(error instanceof ChannelError, String(error));
  return error;
}

suite('a chat or paging channel', () => {
  for (const type of names) {
    const { path = '' } = services[type] ?? {};
    test(`${type} posts JSON with the subject, the command and the link, without the mail signature`, async (t) => {
      const { call, headers, body, json } = await sent(t, type, failed);
      assert.equal(call, `POST ${path}`);
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(Number(headers['content-length']), Buffer.byteLength(body));
      for (const words of ['web: renewal failed', 'vault certificate show --name web', link]) {
        assert(body.includes(words), `${words} is missing in ${body}`);
      }
      assert(!body.includes('Certificate Vault\\n'), 'the signature of mails is left out');
      assert(!JSON.stringify(json).includes('undefined'));
    });

    test(`${type} omits the link if no public URL is configured`, async (t) => {
      const { body } = await sent(t, type, failed, { publicUrl: undefined });
      assert(!body.includes('/certificates/web') && !/undefined|null"/.test(body), body);
    });

    test(`${type} reports HTTP errors with status and Retry-After, without body, path or secret`, async (t) => {
      const api = await fakeChatApi(t);
      const cases: [number, object, Record<string, string>, number | undefined][] = [
        [400, { error: 'busybody' }, {}, undefined],
        [403, {}, {}, undefined],
        [500, {}, {}, undefined],
        [503, {}, { 'retry-after': '3600' }, hour],
        [429, {}, { 'retry-after': '60' }, 60 * second],
        [429, { retry_after: 1.2 }, {}, 2 * second],
        [429, { parameters: { retry_after: 30 } }, {}, 30 * second],
        [429, { retry_after: 'busybody' }, {}, undefined],
        [302, {}, { location: 'http://127.0.0.1:9/' }, undefined],
      ];
      for (const [code, body, headers, wait] of cases) {
        api.answers.push(jsonAnswer(code, body, headers));
        const error = await refusal(send(api, type, failed));
        assert.match(error.message, new RegExp(`^127\\.0\\.0\\.1:\\d+ responded with ${code}`));
        assert.deepEqual([error.retryAfterMs, error.isGone], [wait, false], String(code));
        assert(!/s3cret|busybody|kkkk/.test(error.message));
      }
      api.answers.push(jsonAnswer(410, {}));
      assert.equal((await refusal(send(api, type, failed))).isGone, true);
      api.answers.push((response) => response.writeHead(429).end('x'.repeat(200_000)));
      assert.match((await refusal(send(api, type, failed))).message, /responded with 429$/);
      api.answers.push((response) => response.destroy());
      assert.doesNotMatch((await refusal(send(api, type, failed))).message, /s3cret|kkkk/);
    });
  }
});

suite('message format', () => {
  test('slack: control characters are escaped, the code block stays closed, and size limits are met', async (t) => {
    const { json, body } = await sent(t, 'slack', failed);
    const [header, section, facts] = json.blocks as unknown as {
      type: string;
      text: { type: string; text: string; verbatim?: boolean };
      elements: { text: string }[];
    }[];
    assert.deepEqual(
      [header?.type, header?.text.type, header?.text.text],
      ['header', 'plain_text', failed.subject],
    );
    assert.match(section?.text.text ?? '', /no &lt;b&gt;A&lt;\/b&gt; &amp; '''@everyone'''/);
    assert.equal(section?.text.text.split('```').length, 3);
    assert.equal(section?.text.verbatim, true);
    assert.equal(facts?.elements[0]?.text, `*Error* · Certificate web · <${link}|Open the console>`);
    assert.equal(json.text, 'Error: web: renewal failed');
    assert(!body.includes('<b>'));
    const long = (await sent(t, 'slack', huge)).json.blocks as unknown as { text: { text: string } }[];
    assert.equal(long[0]?.text.text.length, 150);
    assert((long[1]?.text.text.length ?? 0) <= 3000);
    assert.match(long[1]?.text.text ?? '', /…\n```$/);
    assert.doesNotMatch(long[1]?.text.text ?? '', /&[a-z]*…/);
  });

  test('teams: the message is an Adaptive Card without Markdown, below 28 KB', async (t) => {
    const { json } = await sent(t, 'teams', failed);
    const [attachment] = json.attachments as unknown as {
      contentType: string;
      content: { type: string; body: { type: string; inlines: { text: string }[] }[]; actions: object[] };
    }[];
    assert.equal(json.type, 'message');
    assert.equal(attachment?.contentType, 'application/vnd.microsoft.card.adaptive');
    assert.equal(attachment?.content.type, 'AdaptiveCard');
    assert.deepEqual([...new Set(attachment?.content.body.map(({ type }) => type))], ['RichTextBlock']);
    assert.equal(attachment?.content.body[0]?.inlines[0]?.text, 'Error');
    assert.deepEqual(attachment?.content.actions, [
      { type: 'Action.OpenUrl', title: 'Open the console', url: link },
    ]);
    assert(Buffer.byteLength((await sent(t, 'teams', huge)).body) < 28_000);
    const many = { ...failed, text: 'a\n'.repeat(5000) };
    assert(Buffer.byteLength((await sent(t, 'teams', many)).body) < 28_000);
  });

  test('discord: mentions are disabled, Markdown in titles is escaped, and size limits are met', async (t) => {
    const { json } = await sent(t, 'discord', { ...failed, subject: '*.web_1: failed' });
    assert.deepEqual(json.allowed_mentions, { parse: [] });
    const [embed] = json.embeds as unknown as Record<string, unknown>[];
    assert.equal(embed?.title, '\\*.web\\_1: failed');
    assert.match(String(embed?.description), /^```\n[^`]*'''@everyone'''[^`]*\n```$/);
    assert.deepEqual(embed?.fields, [
      { name: 'Severity', value: 'Error', inline: true },
      { name: 'Certificate', value: 'web', inline: true },
    ]);
    assert.deepEqual([embed?.url, embed?.timestamp], [link, failed.timestamp]);
    const [long] = (await sent(t, 'discord', huge)).json.embeds as unknown as {
      title: string;
      description: string;
    }[];
    assert(long && long.title.length <= 256 && long.description.length <= 4096);
    assert(long.title.length + long.description.length <= 6000);
    assert.match(long.description, /…\n```$/);
  });

  test('telegram: HTML is escaped, previews are off, and the text has at most 4096 characters', async (t) => {
    const { json } = await sent(t, 'telegram', failed);
    assert.partialDeepStrictEqual(json, {
      ...{ chat_id: '-1001', message_thread_id: 7, parse_mode: 'HTML' },
      link_preview_options: { is_disabled: true },
    });
    const text = String(json.text);
    assert.match(text, /^<b>Error: web: renewal failed<\/b>\n<pre>/);
    assert.match(text, /no &lt;b&gt;A&lt;\/b&gt; &amp; /);
    assert(text.endsWith(`</pre>\n<a href="${link}">Open the console</a>`));
    const long = String((await sent(t, 'telegram', huge)).json.text);
    assert(long.length <= 4096 && long.length > 4000, String(long.length));
    assert.match(long, /^<b>[^<]*<\/b>\n<pre>[^<]*…<\/pre>\n<a href="[^"<]*">Open the console<\/a>$/);
  });

  test('ntfy: the message has priority, tags, link and a Bearer token, and at most 4096 bytes', async (t) => {
    const { json, headers } = await sent(t, 'ntfy', failed);
    assert.equal(headers.authorization, 'Bearer tk_s3cret');
    assert.partialDeepStrictEqual(json, { topic: 'vault', priority: 4, tags: ['x'], click: link });
    const { json: long } = await sent(t, 'ntfy', huge);
    assert(Buffer.byteLength(String(long.message)) <= 4096 && Buffer.byteLength(String(long.title)) <= 250);
    assert.partialDeepStrictEqual((await sent(t, 'ntfy', recovered)).json, { tags: ['white_check_mark'] });
  });

  test('gotify: the token is sent in X-Gotify-Key, with plain text and a link', async (t) => {
    const { json, headers } = await sent(t, 'gotify', failed);
    assert.equal(headers['x-gotify-key'], 's3cret');
    assert.partialDeepStrictEqual(json, {
      priority: 8,
      extras: {
        'client::display': { contentType: 'text/plain' },
        'client::notification': { click: { url: link } },
      },
    });
    assert(String((await sent(t, 'gotify', huge)).json.message).length <= 10_000);
  });

  test('pagerduty: an alarm triggers, its recovery resolves with the same key, and other events are changes', async (t) => {
    const { json } = await sent(t, 'pagerduty', failed);
    assert.partialDeepStrictEqual(json, {
      ...{ routing_key: key32, event_action: 'trigger', dedup_key: 'vault-1/certificate/web' },
      payload: {
        ...{ summary: failed.subject, severity: 'error', source: 'vault.example.test' },
        ...{ timestamp: failed.timestamp, component: 'web', class: 'renewal.failed' },
      },
      ...{ client_url: link, links: [{ href: link, text: 'Open the console' }] },
    });
    assert.deepEqual((await sent(t, 'pagerduty', recovered)).json, {
      ...{ routing_key: key32, dedup_key: 'vault-1/certificate/web', event_action: 'resolve' },
    });
    const { json: long } = await sent(t, 'pagerduty', huge);
    assert.equal((long.payload as unknown as { summary: string }).summary.length, 1024);
    const issued = { ...failed, type: 'certificate.issued' };
    const change = await sent(t, 'pagerduty', issued);
    assert.equal(change.call, 'POST /v2/change/enqueue');
    assert.partialDeepStrictEqual(change.json, { routing_key: key32, payload: { summary: failed.subject } });
  });

  test('opsgenie: an alarm opens an alert, and its recovery closes it by its alias', async (t) => {
    const { json, headers } = await sent(t, 'opsgenie', failed);
    assert.equal(headers.authorization, 'GenieKey s3cret');
    assert.partialDeepStrictEqual(json, {
      ...{ message: failed.subject, alias: 'vault-1/certificate/web', priority: 'P2', entity: 'web' },
      details: { event: 'renewal.failed', certificate: 'web', console: link },
    });
    const closed = await sent(t, 'opsgenie', recovered);
    assert.equal(closed.call, 'POST /v2/alerts/vault-1%2Fcertificate%2Fweb/close?identifierType=alias');
    const { json: long } = await sent(t, 'opsgenie', huge);
    assert.equal(String(long.message).length, 130);
    assert(String(long.description).length <= 15_000);
  });

  const alarms: [type: string, data: object, dedup: string, severity: string][] = [
    ['certificate.expiring', { certificate: 'web', urgency: 'over' }, 'certificate/web', 'critical'],
    ['certificate.expiring', { certificate: 'web', urgency: 'near' }, 'certificate/web', 'warning'],
    ['api_key.expiring', { api_key: { id: 4 }, urgency: 'over' }, 'api-key/4', 'error'],
    ['private_ca.expiring', { private_ca: 'dev', urgency: 'near' }, 'private-ca/dev', 'warning'],
    ['private_ca.expiring', { private_ca: 'dev', urgency: 'emergency' }, 'private-ca/dev', 'critical'],
    ['backup.overdue', {}, 'backup', 'error'],
    ['disk.low', { state: 'critical' }, 'disk', 'critical'],
    ['disk.low', { state: 'low' }, 'disk', 'warning'],
  ];
  for (const [type, data, dedup, severity] of alarms) {
    test(`${type} ${Object.values(data).at(-1) ?? ''} has severity ${severity} and deduplication key ${dedup}`, async (t) => {
      const { json } = await sent(t, 'pagerduty', { ...failed, type, data: { ...data } });
      assert.equal(json.dedup_key, `vault-1/${dedup}`);
      assert.partialDeepStrictEqual(json.payload, { severity });
    });
  }

  const own: [kind: string, data: object, dedup: string][] = [
    ['deployment', { deployments: [{ certificate: 'web', id: 'web-1.7' }] }, 'deployment/web/web-1.7'],
    ['endpoint', { endpoints: [{ certificate: 'web', id: 7 }] }, 'endpoint/7'],
  ];
  for (const [kind, data, dedup] of own) {
    test(`pagerduty and opsgenie: each ${kind} opens an alert of its own, which its recovery closes`, async (t) => {
      const key = `vault-1/${dedup}`;
      const unhealthy = { ...failed, type: `${kind}.unhealthy`, data: { counts: {}, ...data } };
      const healthy = { ...unhealthy, type: `${kind}.recovered` };
      const { json } = await sent(t, 'pagerduty', unhealthy);
      assert.deepEqual([json.event_action, json.dedup_key], ['trigger', key]);
      assert.partialDeepStrictEqual(json.payload, { severity: 'warning' });
      const { json: over } = await sent(t, 'pagerduty', healthy);
      assert.deepEqual([over.event_action, over.dedup_key], ['resolve', key]);
      assert.equal((await sent(t, 'opsgenie', unhealthy)).json.alias, key);
      const { call } = await sent(t, 'opsgenie', healthy);
      assert.equal(call, `POST /v2/alerts/${encodeURIComponent(key)}/close?identifierType=alias`);
    });
  }

  const pages = [
    ['renewal.failed', { certificate: 'a/b' }, '/certificates/a%2Fb'],
    ['deployment.unhealthy', { deployments: [{ certificate: 'web', id: 'web-1' }] }, '/fleet'],
    ['endpoint.unhealthy', { endpoints: [{ id: 7 }] }, '/fleet?tab=endpoints'],
    ['api_key.expiring', { api_key: { id: 1 } }, '/api-keys'],
    ['disk.low', {}, '/'],
  ] as const;
  for (const [type, data, page] of pages)
    test(`the link of ${type} leads to ${page}`, async (t) => {
      const { json } = await sent(t, 'ntfy', { ...failed, type, data });
      assert.equal(json.click, `${publicUrl}${page}`);
    });

  test('a message of several notices is as severe as the worst of them', async (t) => {
    const notices = [{ type: 'disk.low' }, { type: 'renewal.failed' }, { type: 'certificate.issued' }];
    const { json } = await sent(t, 'gotify', { ...failed, type: 'gathered', data: { notices } });
    assert.equal(json.priority, 8);
  });
});

test('settings with an unencrypted URL or with values that the service does not accept are rejected', () => {
  const wrong: [string, object][] = [
    ['slack', { url: 'http://hooks.test/x' }],
    ['slack', { url: 'https://user:word@hooks.test/' }],
    ['slack', {}],
    ['teams', { url: 'teams' }],
    ['discord', { url: 'https://a.test/#x' }],
    ['telegram', { token: 'x', chat: '1' }],
    ['telegram', { token: '1:a/../b', chat: '1' }],
    ['telegram', { token: '1:a', chat: 'my group' }],
    ['ntfy', { topic: 'a/b' }],
    ['ntfy', { topic: 'a', url: 'https://a.test/?x=1' }],
    ['ntfy', { topic: 'a', token: 'a\r\nb' }],
    ['gotify', { token: 'a' }],
    ['gotify', { url: 'https://a.test', token: '' }],
    ['pagerduty', { routing_key: 'short' }],
    ['opsgenie', { api_key: 'a b' }],
    ['opsgenie', { api_key: 'a', more: 1 }],
  ];
  for (const [type, config] of wrong) {
    assert(!channelTypes.get(type)?.config.safeParse(config).success, `${type} ${JSON.stringify(config)}`);
  }
});

test('texts are cut between characters, and only if they do not fit', () => {
  const encode = (character: string) => (character === '<' ? '&lt;' : character);
  const rows: [string, number, string][] = [
    ['abc', 3, 'abc'],
    ['abcd', 3, 'ab…'],
    ['', 3, ''],
    ['<', 4, '&lt;'],
    ['a<b', 5, 'a…'],
    ['😀😀', 3, '😀…'],
    ['ab cd', 4, 'ab…'],
  ];
  for (const [text, most, expected] of rows) assert.equal(cut(text, most, { encode }), expected, text);
});
