/**
 * Notices of endpoints: one per check and channel for all that became unhealthy, one for all that are current again,
 * and none for what was notified before. Long lists are in notification-deployments.test.ts, whose mechanism this is.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { updateEndpoint } from '../../../src/db/tables/endpoints.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import {
  addEndpoint,
  changeEndpoint,
  removeEndpoint,
} from '../../../src/domain/endpoints/endpoint-changes.ts';
import { createEndpointInput, updateEndpointInput } from '../../../src/domain/endpoints/endpoint-inputs.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { addChannel } from '../../../src/domain/notifications/notification-channels.ts';
import type { EndpointChanges } from '../../../src/domain/notifications/notification-endpoint-text.ts';
import { notifyEndpoints } from '../../../src/domain/notifications/notification-endpoints.ts';
import { createChannelInput } from '../../../src/domain/notifications/notification-inputs.ts';
import { messageText } from '../../../src/domain/notifications/notification-text.ts';
import { giveVersion, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook, toldIn, written } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const nowhere = 'http://127.0.0.1:1/';
const fingerprint = 'ab'.repeat(32);
const refused = { failures: 2, error: 'connection refused' };
const anyReach = () => undefined;

/** A vault with a certificate of two versions, and a webhook for the usual events unless it is `none`. */
async function prepared(t: TestContext, channel: 'none' | Record<string, unknown> = {}) {
  const opened = await testVault(t);
  const { vault, world } = opened;
  if (channel !== 'none') await addWebhook(vault, nowhere, channel);
  await makeCertificate(vault, 'web', { labels: ['team=web'] });
  await giveVersion(vault, 'web');
  const add = (address: string, certificate: string | null = 'web', others: object = {}) =>
    addEndpoint(vault, localCli, parseInput(createEndpointInput, { address, certificate, ...others }));
  /** Stores the outcome of a check; by default the current version is served. */
  const seen = async (id: number, changes: object = {}) => {
    const now = world.now();
    const served = {
      fingerprint_sha256: fingerprint,
      version: 2,
      not_before: now - day,
      not_after: now + 90 * day,
    };
    const outcome = { ...served, problem: null, failures: 0, error: null, checked_at: now, ...changes };
    await vault.db.write((writer) => updateEndpoint(writer, id, outcome));
  };
  const check = () => notifyEndpoints(vault, { after: 0 }, 15_000);
  /** What receivers get: the data and the text of all notices, oldest first. */
  const notices = async () => {
    const rows = await vault.db.reader
      .selectFrom('notifications')
      .select(['event', 'data', 'at', 'about'])
      .orderBy('id')
      .execute();
    return rows.map(({ event, data, at, about }) => {
      const changes = JSON.parse(data) as EndpointChanges;
      return { event, about, ...changes, ...messageText(event, JSON.parse(data), at) };
    });
  };
  const stored = async () =>
    (await vault.db.reader.selectFrom('endpoints').select('notified_state').orderBy('id').execute()).map(
      (row) => row.notified_state,
    );
  return { ...opened, world, add, seen, check, notices, stored, told: () => toldIn(vault) };
}

suite('a change of an endpoint', () => {
  test('is notified once, however often it is checked, and so is the recovery', async (t) => {
    const { world, add, seen, check, notices, told } = await prepared(t);
    const id = await add('www.example.test', 'web', { server_name: 'web.example.test' });
    assert.equal(await check(), 0, 'not checked yet');
    await seen(id);
    assert.equal(await check(), 0);
    await seen(id, { version: null });
    assert.equal(await check(), 1);
    for (let again = 0; again < 3; again += 1) {
      world.advance(minute);
      // Another certificate is not another state.
      await seen(id, { version: null, fingerprint_sha256: String(again).repeat(64) });
      assert.equal(await check(), 0);
    }
    await seen(id);
    assert.equal(await check(), 1);
    assert.equal(await check(), 0);
    const about = 'web at www.example.test:443 (web.example.test)';
    assert.deepEqual(await told(), [`endpoint.unhealthy ${about}`, `endpoint.recovered ${about}`]);
    const [alarm, recovery] = await notices();
    assert.deepEqual(alarm?.counts, { unknown: 1 });
    assert.deepEqual(alarm.endpoints, [
      {
        ...{ id, address: 'www.example.test:443', server_name: 'web.example.test', certificate: 'web' },
        ...{ state: 'unknown', previous_state: 'current', reason: 'not a version of certificate web' },
        ...{ fingerprint_sha256: fingerprint, not_after: '2027-02-19T12:00:00Z' },
        checked_at: '2026-11-21T12:00:00Z',
      },
    ]);
    assert.match(alarm.subject, /web at www\.example\.test:443: unknown, not a version of certificate web$/);
    assert.match(alarm.text, /^Unknown: another certificate is served:$/m);
    assert.match(alarm.text, /^ {2}vault endpoint list --state unknown$/m);
    assert.deepEqual(recovery?.counts, { current: 1 });
    assert.equal(recovery.endpoints[0]?.previous_state, 'unknown');
    assert.match(recovery.subject, /web at www\.example\.test:443: current again$/);
    assert.match(recovery.text, /^ +Was: +unknown$/m);
  });

  test('is notified for each state it goes through, with what it was before', async (t) => {
    const { world, add, seen, check, notices } = await prepared(t);
    const id = await add('www.example.test');
    await seen(id, { ...refused, failures: 1 });
    assert.equal(await check(), 0, 'one failed check may be a restart');
    await seen(id, refused);
    assert.equal(await check(), 1);
    await seen(id, { version: null });
    assert.equal(await check(), 1);
    await seen(id, { version: 1 });
    assert.equal(await check(), 1, 'clients have time to install a version');
    world.advance(day + hour);
    assert.equal(await check(), 1);
    await seen(id, { problem: 'self-signed certificate' });
    assert.equal(await check(), 1);
    await seen(id, { not_after: world.now() + hour });
    assert.equal(await check(), 1, 'the vault warns of its own certificates before they expire');
    world.advance(hour);
    assert.equal(await check(), 1);
    world.advance(day);
    assert.equal(await check(), 0, 'nothing reminds');
    await seen(id);
    assert.equal(await check(), 1);
    assert.deepEqual(
      (await notices()).flatMap(({ event, endpoints }) =>
        endpoints.map((one) => [event, one.previous_state, one.state, one.reason]),
      ),
      [
        ['endpoint.unhealthy', 'current', 'unreachable', 'connection refused'],
        ['endpoint.unhealthy', 'unreachable', 'unknown', 'not a version of certificate web'],
        ['endpoint.recovered', 'unknown', 'current', null],
        ['endpoint.unhealthy', 'current', 'outdated', 'version 1 instead of 2'],
        ['endpoint.unhealthy', 'outdated', 'untrusted', 'self-signed certificate'],
        ['endpoint.recovered', 'untrusted', 'current', null],
        ['endpoint.unhealthy', 'current', 'expiring', 'expires at 2026-11-22T14:00:00Z'],
        ['endpoint.recovered', 'expiring', 'current', null],
      ],
    );
  });

  test('is notified with all others of a check in one message, and all recoveries in another', async (t) => {
    const { add, seen, check, notices, told } = await prepared(t);
    const ids: number[] = [];
    for (const host of ['gone1', 'gone2', 'other', 'good'])
      ids.push(await add(`${host}.test`, 'web', { server_name: '' }));
    const [gone1 = 0, gone2 = 0, other = 0, good = 0] = ids;
    const foreign = await add('shop.test:8443', null);
    await seen(good, refused);
    assert.equal(await check(), 1);
    for (const id of [gone1, gone2]) await seen(id, refused);
    await seen(other, { version: null });
    await seen(foreign, { version: null, problem: 'self-signed certificate' });
    await seen(good);
    assert.equal(await check(), 5);
    const [first, ...others] = await told();
    assert.deepEqual(
      [first, others.toSorted()],
      [
        'endpoint.unhealthy web at good.test:443',
        ['endpoint.recovered web at good.test:443', 'endpoint.unhealthy 4 endpoints'],
      ],
    );
    const unwell = (await notices()).find(({ about }) => about === '4 endpoints') ?? assert.fail();
    assert.deepEqual(unwell.counts, { unreachable: 2, unknown: 1, untrusted: 1 });
    assert.match(unwell.subject, /4 endpoints need attention: 2 unreachable, 1 unknown, 1 untrusted$/);
    assert.match(unwell.text, /^ {2}web at gone2\.test:443: connection refused$/m);
    assert.match(unwell.text, /^ {2}shop\.test:8443: self-signed certificate$/m);
    assert.match(unwell.text, /^ {2}vault endpoint check$/m);
    for (const id of [gone1, gone2, other, foreign]) await seen(id);
    assert.equal(await check(), 4);
    const { subject, text } = (await notices()).at(-1) ?? assert.fail();
    assert.match(subject, /4 endpoints are current again$/);
    assert.match(text, /^ {2}web at other\.test:443: was unknown$/m);
  });

  test('is not notified while nothing is known after a change of its settings', async (t) => {
    const { vault, add, seen, check, stored, told } = await prepared(t);
    const id = await add('www.example.test');
    await seen(id, refused);
    assert.equal(await check(), 1);
    const input = parseInput(updateEndpointInput, { trust: 'private-ca' });
    await changeEndpoint(vault, localCli, id, input, anyReach);
    assert.equal(await check(), 0);
    assert.deepEqual(await stored(), ['unreachable']);
    await seen(id, { ...refused });
    assert.equal(await check(), 0, 'the state before the change was notified');
    await seen(id);
    assert.equal(await check(), 1);
    assert.equal((await told()).length, 2);
  });

  test('is notified once by two nodes that find it at the same time', async (t) => {
    const { vault, add, seen, told, check } = await prepared(t);
    const nodes = () => Promise.all([1, 2].map(() => notifyEndpoints(vault, { after: 0 }, 15_000)));
    const ids = [await add('www1.test'), await add('www2.test')];
    for (const id of ids) await seen(id, refused);
    assert.deepEqual((await nodes()).toSorted(), [0, 2]);
    assert.deepEqual(await told(), ['endpoint.unhealthy 2 endpoints']);
    for (const id of ids) await seen(id);
    assert.deepEqual((await nodes()).toSorted(), [0, 2]);
    assert.deepEqual((await told()).slice(1), ['endpoint.recovered 2 endpoints']);
    assert.equal(await check(), 0);
  });

  test('is notified no more once the endpoint is removed, and as new when it is added again', async (t) => {
    const { vault, add, seen, check, told } = await prepared(t);
    const id = await add('www.example.test');
    await seen(id, refused);
    assert.equal(await check(), 1);
    await removeEndpoint(vault, localCli, id, anyReach);
    assert.equal(await check(), 0);
    const again = await add('www.example.test');
    await seen(again);
    assert.equal(await check(), 0, 'no recovery of what was removed');
    await seen(again, refused);
    assert.equal(await check(), 1);
    assert.equal((await told()).length, 2);
  });
});

suite('a channel', () => {
  test('learns of all that need attention if it is the first for this event, before which nothing is stored', async (t) => {
    const { vault, add, seen, check, stored, told } = await prepared(t, 'none');
    await seen(await add('shop.test', null), refused);
    assert.equal(await check(), 0);
    await addWebhook(vault, nowhere, { name: 'other', events: ['deployment.unhealthy'] });
    assert.equal(await check(), 0);
    assert.deepEqual(await stored(), [null]);
    await addWebhook(vault, nowhere, { name: 'ops' });
    assert.equal(await check(), 1);
    assert.deepEqual(await stored(), ['unreachable']);
    assert.deepEqual(await told(), ['endpoint.unhealthy shop.test:443 (shop.test)']);
  });

  test('gets endpoints of certificates that fit its patterns and labels, and all without a certificate', async (t) => {
    const { vault, add, seen, check, notices } = await prepared(t, 'none');
    await makeCertificate(vault, 'mail', { labels: ['team=mail'] });
    const channels: [name: string, filter: object][] = [
      ['all', {}],
      ['pattern', { certificates: ['ma*', 'none'] }],
      ['label', { certificate_labels: ['team=web'] }],
      ['neither', { certificates: ['mail'], certificate_labels: ['team=web'] }],
    ];
    for (const [name, filter] of channels) await addWebhook(vault, nowhere, { name, ...filter });
    for (const certificate of ['web', 'mail', null])
      await seen(await add(`${certificate ?? 'shop'}.test`, certificate), refused);
    assert.equal(await check(), 3);
    const deliveries = await vault.db.reader
      .selectFrom('notification_deliveries as delivery')
      .innerJoin('notification_channels as channel', 'channel.id', 'delivery.channel_id')
      .select('channel.name')
      .orderBy('delivery.notification_id')
      .execute();
    const given = (await notices()).map(({ endpoints }, at) => [
      deliveries[at]?.name,
      endpoints.map(({ certificate }) => certificate),
    ]);
    assert.deepEqual(given.toSorted(), [
      ['all', ['web', 'mail', null]],
      ['label', ['web', null]],
      ['neither', [null]],
      ['pattern', ['mail', null]],
    ]);
  });

  for (const [type, settings] of [
    ['pagerduty', { routing_key: 'k'.repeat(32) }],
    ['opsgenie', { api_key: 'k' }],
  ] as const) {
    test(`${type} gets one notice for each endpoint, of the alarm and of the recovery`, async (t) => {
      const { vault, add, seen, check, notices } = await prepared(t, 'none');
      const input = parseInput(createChannelInput, { name: 'oncall', type });
      await addChannel(vault, localCli, input, written(settings));
      const ids = [await add('www1.test'), await add('www2.test', null)];
      for (const id of ids) await seen(id, refused);
      assert.equal(await check(), 2);
      for (const id of ids) await seen(id);
      assert.equal(await check(), 2);
      assert.deepEqual(
        (await notices()).map(({ event, endpoints }) => [event, endpoints.map(({ id }) => id)]),
        ['endpoint.unhealthy', 'endpoint.recovered'].flatMap((event) => ids.map((id) => [event, [id]])),
      );
    });
  }
});
