/**
 * Webhooks: signed so that a receiver who knows the specification alone is content, and honest about what went wrong.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { hour } from '../../src/base/duration.ts';
import { realWorld } from '../../src/base/world.ts';
import { ChannelError, type Message } from '../../src/channels/channel.ts';
import { type WebhookChannelConfig, webhookChannel } from '../../src/channels/webhook-channel.ts';
import {
  isSignedWith,
  status,
  type WebhookReceiver,
  webhookReceiver,
} from '../harness/http/webhook-receiver.ts';
import { loopbackGuard, loopbackOutbound } from '../harness/loopback-guard.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const message: Message = {
  id: 'msg_1',
  type: 'renewal.failed',
  timestamp: '2026-11-21T12:00:00Z',
  subject: 'web: a renewal failed',
  text: 'The renewal failed.\n',
  data: { certificate: 'web' },
};
const { signal } = new AbortController();
const context = { world: realWorld, outbound: loopbackOutbound, guard: loopbackGuard };

const send = (settings: Partial<WebhookChannelConfig> & { url: string }, over = context) =>
  webhookChannel.create({ secret, ...settings }, over).send(message, signal);

async function refusal(work: Promise<unknown>): Promise<ChannelError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert(error instanceof ChannelError, String(error));
  return error;
}

async function answered(t: TestContext, answer: WebhookReceiver['answers'][number]) {
  const receiver = await webhookReceiver(t);
  receiver.answers.push(answer);
  return receiver;
}

suite('a webhook', () => {
  test('receives the message as JSON, signed with its ID and the time', async (t) => {
    const receiver = await webhookReceiver(t);
    await send({ url: receiver.url });
    const [got] = receiver.received;
    assert(got);
    assert.deepEqual(got.json, message);
    assert.equal(got.headers['content-type'], 'application/json');
    assert.equal(got.headers['webhook-id'], 'msg_1');
    assert(isSignedWith(secret, got, realWorld.now()));
    assert(!isSignedWith(`whsec_${Buffer.alloc(32, 8).toString('base64')}`, got, realWorld.now()));
    assert(!isSignedWith(secret, { ...got, body: `${got.body} ` }, realWorld.now()));
  });

  test('is trusted only if the configured CA issued its certificate for its address', async (t) => {
    const receiver = await webhookReceiver(t, { names: ['127.0.0.1'] });
    await send({ url: receiver.url, ca: receiver.ca });
    assert.equal(receiver.received.length, 1);
    const { message: words } = await refusal(send({ url: receiver.url }));
    assert.match(words, /^the certificate of 127\.0\.0\.1:\d+ is not trusted: /);
    const elsewhere = await webhookReceiver(t, { names: ['other.test'] });
    await refusal(send({ url: elsewhere.url, ca: elsewhere.ca }));
    assert.equal(receiver.received.length + elsewhere.received.length, 1);
  });

  const answers: [code: number, headers: Record<string, string>, words: RegExp, wait?: number][] = [
    [500, {}, /^127\.0\.0\.1:\d+ responded with 500$/],
    [404, {}, / responded with 404$/],
    [302, { location: 'http://127.0.0.1:9/' }, / responded with 302; redirects are not followed$/],
    [429, { 'retry-after': '3600' }, / responded with 429$/, hour],
    [503, { 'retry-after': 'soon' }, / responded with 503$/],
    [503, { 'retry-after': '999999999' }, / responded with 503$/, 7 * 24 * hour],
  ];
  for (const [code, headers, words, wait] of answers) {
    test(`fails without its body and token in the error, if it responds with ${code} ${Object.values(headers)}`, async (t) => {
      const receiver = await answered(t, status(code, headers));
      const error = await refusal(send({ url: receiver.url }));
      assert.match(error.message, words);
      assert.equal(error.retryAfterMs, wait);
      assert.equal(error.isGone, false);
      assert(!/t0ken|business/.test(error.message));
      assert.equal(receiver.received.length, 1);
    });
  }

  test('is reported as gone if it responds with 410', async (t) => {
    const receiver = await answered(t, status(410));
    assert.equal((await refusal(send({ url: receiver.url }))).isGone, true);
  });

  test('counts as successful if it responds with 200 and a large body', async (t) => {
    const receiver = await answered(t, (response) => response.writeHead(200).end('x'.repeat(200_000)));
    await send({ url: receiver.url });
    assert.equal(receiver.received.length, 1);
  });

  test('fails with its Retry-After if it responds with 503 and a large body', async (t) => {
    const receiver = await answered(t, (response) =>
      response.writeHead(503, { 'retry-after': '3600' }).end('x'.repeat(200_000)),
    );
    const error = await refusal(send({ url: receiver.url }));
    assert.match(error.message, / responded with 503$/);
    assert.equal(error.retryAfterMs, hour);
  });

  test('is reported as failed if it closes or refuses the connection', async (t) => {
    const receiver = await answered(t, (response) => response.destroy());
    assert.match((await refusal(send({ url: receiver.url }))).message, /closed the connection/);
    const refused = await refusal(send({ url: 'http://127.0.0.1:1/hook?token=t0ken' }));
    assert.match(refused.message, /^cannot connect to 127\.0\.0\.1:1: connection refused/);
  });
});

test('settings with an unencrypted URL, a weak secret or an invalid CA are rejected', () => {
  const valid = { url: 'https://hooks.test/x?y=z', secret };
  assert(webhookChannel.config.safeParse(valid).success);
  const wrong = [
    { url: 'http://hooks.test/x' },
    { url: 'https://user:word@hooks.test/' },
    { url: 'https://hooks.test/#part' },
    { url: 'ftp://hooks.test/' },
    { url: 'hooks.test' },
    { secret: 'whsec_' },
    { secret: 'hunter2' },
    { secret: `whsec_${Buffer.alloc(23, 7).toString('base64')}` },
    { secret: `whsec_${Buffer.alloc(65, 7).toString('base64')}` },
    { ca: 'no PEM' },
    { ca: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' },
    { more: 1 },
  ];
  for (const one of wrong) {
    assert(!webhookChannel.config.safeParse({ ...valid, ...one }).success, JSON.stringify(one));
  }
  assert(webhookChannel.config.safeParse({ ...valid, url: 'http://127.0.0.1:8/x' }).success);
  assert.equal(webhookChannel.target(valid), 'https://hooks.test');
});
