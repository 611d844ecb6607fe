/**
 * Notification channels over HTTP: credentials go in and never come out, no session becomes a shell, and tests tell the
 * truth.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { addChannel } from '../../../src/domain/notifications/notification-channels.ts';
import { createChannelInput } from '../../../src/domain/notifications/notification-inputs.ts';
import { administration, allPages } from '../../harness/http/administration.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { isSignedWith, status, webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { failRenewal, written } from '../../harness/notifications/fixtures.ts';

const path = '/api/v1/notification-channels';
const url = 'https://hooks.a.test/x?token=t0ken';
const body = { name: 'ops', type: 'webhook', settings: { url } };

type Problem = { code: string; detail: string; errors?: { path: string }[] };
type View = Record<string, unknown> & { secret: string | null };

async function prepared(t: TestContext) {
  const receiver = await webhookReceiver(t);
  return { ...(await administration(t)), receiver };
}

suite('a notification channel', () => {
  test('returns its generated secret only when it is created', async (t) => {
    const { expect, said, server } = await prepared(t);
    const { secret, ...view } = await expect<View>(201, 'POST', path, body);
    assert.match(secret ?? '', /^whsec_/);
    assert.partialDeepStrictEqual(view, {
      ...{ name: 'ops', type: 'webhook', target: 'https://hooks.a.test', certificates: [], waiting: 0 },
      ...{ digest_at: null, digest_days: 14, disabled_at: null, last_delivery: null },
    });
    assert.deepEqual(await expect(200, 'GET', path), [view]);
    assert.match((await expect<Problem>(400, 'POST', path, body)).detail, /named ops already exists/);
    await expect(200, 'GET', '/api/v1/audit-events');
    assert(!said().includes('t0ken'));
    assert.equal(said().split(secret ?? '').length, 2, 'the secret was said once');
    assert(!server.log.lines.join('\n').includes(secret ?? ''));
    const own = { secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}`, url };
    assert.equal(
      (await expect<View>(201, 'POST', path, { ...body, name: 'own', settings: own })).secret,
      null,
    );
    assert(!said().includes(own.secret));
  });

  test('is rejected for missing or unknown settings without echoing the token', async (t) => {
    const { expect, said } = await prepared(t);
    const wrong: [object, RegExp][] = [
      [{ ...body, settings: {} }, /^Invalid settings for webhook: url is missing/],
      [{ ...body, settings: { url: 'http://a.test/t0ken' } }, /url must be an https/],
      [{ ...body, settings: { url, t0ken: 1 } }, /unknown|no name/],
      [{ ...body, type: 'webhok' }, /Unknown notification channel type "webhok"/],
      [{ ...body, events: ['rain'] }, /"rain" is not an event/],
      [{ ...body, certificates: ['a b'] }, /a pattern has up to 128 letters/],
      [{ ...body, digest_at: '25:00' }, /the time of a digest/],
      [{ ...body, settings: undefined }, /settings/],
      [{ ...body, secret: 't0ken' }, /secret/],
    ];
    for (const [sent, detail] of wrong) {
      assert.match((await expect<Problem>(400, 'POST', path, sent)).detail, detail);
    }
    assert.deepEqual(await expect(200, 'GET', path), []);
    assert(!said().includes('t0ken'), said());
  });

  test('is rejected with the path of each wrong setting', async (t) => {
    const { expect } = await prepared(t);
    const settings = { url: 'http://a.test', hue: 'red' };
    const { errors = [] } = await expect<Problem>(400, 'POST', path, { ...body, settings });
    assert.deepEqual(errors.map((error) => error.path).toSorted(), ['settings.hue', 'settings.url']);
  });

  test('of type exec cannot be created over HTTP, and its command cannot be changed', async (t) => {
    const { expect, server } = await prepared(t);
    const hook = { name: 'x', type: 'exec', settings: { command: ['/bin/true'] } };
    const { detail, errors } = await expect<Problem>(400, 'POST', path, hook);
    assert.match(detail, /only be added on the vault's host/);
    assert.equal(errors?.[0]?.path, 'type');
    const input = parseInput(createChannelInput, { name: 'x', type: 'exec' });
    await addChannel(server.vault, localCli, input, written({ command: ['/bin/true'] }));
    const elsewhere = { settings: { command: ['/bin/sh', '-c', 'id'] } };
    assert.match(
      (await expect<Problem>(400, 'PATCH', `${path}/x`, elsewhere)).detail,
      /only be added on the vault's host/,
    );
    assert.partialDeepStrictEqual(await expect<View>(200, 'PATCH', `${path}/x`, { events: [] }), {
      target: '/bin/true',
      events: [],
    });
    await expect(204, 'POST', `${path}/x/test`);
  });

  test('is changed in parts, tested, disabled and removed, each recorded with its actor', async (t) => {
    const { expect, receiver, server } = await prepared(t);
    const { secret } = await expect<View>(201, 'POST', path, body);
    const at = `${path}/ops`;
    const settings = { url: receiver.url };
    const { secret: next } = await expect<View>(200, 'PATCH', at, { settings, digest_at: '07:00' });
    assert(next && next !== secret);
    await expect(204, 'POST', `${at}/test`);
    const [got] = receiver.received;
    assert(got && isSignedWith(next, got, server.world.now()));
    receiver.answers.push(status(500));
    assert.match((await expect<Problem>(400, 'POST', `${at}/test`)).detail, /responded with 500\.$/);
    const view = await expect<View>(200, 'PATCH', at, { disabled: true, certificates: ['web*'] });
    assert.partialDeepStrictEqual(view, { secret: null, digest_at: '07:00', certificates: ['web*'] });
    assert.partialDeepStrictEqual(view.last_delivery, { event: 'test', status: 'failed' });
    assert.notEqual(view.disabled_at, null);
    await expect(204, 'DELETE', at);
    for (const [method, where] of [
      ['DELETE', at],
      ['PATCH', at],
      ['POST', `${at}/test`],
      ['GET', '/api/v1/notification-deliveries?channel=ops'],
    ] as const) {
      const sent = method === 'PATCH' ? {} : undefined;
      assert.equal((await expect<Problem>(404, method, where, sent)).code, 'not_found');
    }
    const actors = ['create', 'update', 'test', 'delete'].flatMap((what) =>
      eventsOf(server.dataDir, `notification_channel.${what}`).map(({ actor }) => actor),
    );
    assert.deepEqual([...new Set(actors)], ['admin:alice']);
    assert.equal(actors.length, 6);
  });
});

test('a chat channel is created with its type, and its token is never returned', async (t) => {
  const { expect, said } = await prepared(t);
  const settings = { url: 'https://hooks.a.test/services/t0ken' };
  const { secret, ...view } = await expect<View>(201, 'POST', path, { ...body, type: 'slack', settings });
  assert.equal(secret, null);
  assert.partialDeepStrictEqual(view, { type: 'slack', target: 'https://hooks.a.test' });
  const wrong = { name: 'tg', type: 'telegram', settings: { token: 't0ken', chat: '1' } };
  assert.match((await expect<Problem>(400, 'POST', path, wrong)).detail, /telegram: token must be/);
  assert(!said().includes('t0ken'));
});

test('the delivery log has pages, newest first, with filters for channel and state', async (t) => {
  const admin = await prepared(t);
  const { expect, server, receiver } = admin;
  await expect(201, 'POST', path, { ...body, settings: { url: receiver.url } });
  await expect(201, 'POST', path, { ...body, name: 'other' });
  for (const name of ['a', 'b', 'c']) {
    await makeCertificate(server.vault, name);
    await failRenewal(server.vault, name, 'no');
  }
  await expect(204, 'POST', `${path}/ops/test`);
  type Delivery = { id: number; channel: string; event: string; about: string | null; status: string };
  const { all, pages } = await allPages<Delivery>(admin, '/api/v1/notification-deliveries?limit=3');
  assert.deepEqual([all.length, pages], [7, 3]);
  assert.deepEqual(
    all.map(({ id }) => id),
    [7, 6, 5, 4, 3, 2, 1],
  );
  const ops = await allPages<Delivery>(admin, '/api/v1/notification-deliveries?channel=ops&limit=2');
  assert.deepEqual(
    ops.all.map(({ event, about }) => `${event} ${about}`),
    ['test null', 'renewal.failed c', 'renewal.failed b', 'renewal.failed a'],
  );
  const [done] = await expect<Delivery[]>(200, 'GET', '/api/v1/notification-deliveries?status=delivered');
  assert.equal(done?.event, 'test');
  await expect(400, 'GET', '/api/v1/notification-deliveries?status=lost');
});

test('notification channel types list their settings as JSON Schema', async (t) => {
  const { expect } = await prepared(t);
  type Kind = { type: string; command_line_only: boolean; settings: { type?: string; properties?: object } };
  const kinds = await expect<Kind[]>(200, 'GET', '/api/v1/notification-channel-types');
  assert.deepEqual(
    kinds.map((kind) => [kind.type, kind.command_line_only, kind.settings.type]),
    [
      ['webhook', false, 'object'],
      ['email', false, 'object'],
      ['exec', true, 'object'],
      ...['slack', 'teams', 'discord', 'telegram', 'ntfy', 'gotify', 'pagerduty', 'opsgenie'].map((type) => [
        ...[type, false, 'object'],
      ]),
    ],
  );
  assert.deepEqual(Object.keys(kinds[0]?.settings.properties ?? {}), [
    ...['url', 'secret', 'ca', 'template', 'content_type'],
  ]);
});
