/** Deliveries: tried again at growing distances, given up in the end, never by two at once, and the log stays small. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { updateChannel } from '../../../src/db/tables/notifications/notification-channels.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import {
  addChannel,
  changeChannel,
  requireChannel,
  testChannel,
} from '../../../src/domain/notifications/notification-channels.ts';
import { claimDelivery } from '../../../src/domain/notifications/notification-claim.ts';
import {
  deliver,
  pruneDeliveries,
  retryDelay,
} from '../../../src/domain/notifications/notification-delivery.ts';
import { createChannelInput } from '../../../src/domain/notifications/notification-inputs.ts';
import { notify } from '../../../src/domain/notifications/notification-queue.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { isSignedWith, status, webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { forever, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { fakeChatApi, jsonAnswer } from '../../harness/notifications/fake-chat-api.ts';
import {
  addWebhook,
  deliverAll,
  deliveriesOf,
  failRenewal,
  written,
} from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

/** A vault with one delivery that waits, and a receiver. */
async function prepared(t: TestContext) {
  const receiver = await webhookReceiver(t);
  const opened = await testVault(t);
  const { vault } = opened;
  const secret = await addWebhook(vault, receiver.url);
  await makeCertificate(vault, 'web');
  await failRenewal(vault, 'web', 'the CA says no');
  const only = async () => {
    const [row] = await deliveriesOf(vault);
    assert(row);
    return row;
  };
  return { ...opened, receiver, secret, only };
}

test('PagerDuty gets no retried alarm after its recovery, and no retried recovery after a new alarm', async (t) => {
  const api = await fakeChatApi(t);
  const { vault, world } = await testVault(t);
  const input = parseInput(createChannelInput, { name: 'oncall', type: 'pagerduty' });
  await addChannel(vault, localCli, input, written({ url: api.origin, routing_key: 'k'.repeat(32) }));
  const say = (event: 'renewal.failed' | 'renewal.recovered', name = 'web') => {
    const data = { certificate: name, error: 'no', domains: [], failed_attempts: 1, told_before: 0 };
    const notice = { event, about: name, certificates: [name], data } as const;
    return vault.db.write((writer) => notify(world, writer, notice));
  };
  const heard = () =>
    api.calls.splice(0).map(({ body }) => {
      const { event_action, dedup_key } = JSON.parse(body) as Record<string, string>;
      return `${event_action} ${dedup_key?.split('/').at(-1)}`;
    });
  api.answers.push(jsonAnswer(503, {}));
  await say('renewal.failed');
  await deliverAll(vault);
  await say('renewal.recovered');
  await say('renewal.failed', 'other');
  world.advance(5 * minute);
  await deliverAll(vault);
  assert.deepEqual(heard().sort(), ['resolve web', 'trigger other', 'trigger web']);
  assert.match((await deliveriesOf(vault))[0]?.error ?? '', /^not sent: a later notification/);
  api.answers.push(jsonAnswer(503, {}));
  await say('renewal.recovered', 'other');
  await deliverAll(vault);
  await say('renewal.failed', 'other');
  world.advance(5 * minute);
  await deliverAll(vault);
  assert.deepEqual(heard(), ['resolve other', 'trigger other']);
});

suite('a delivery', () => {
  test('is sent once, signed, with readable text and structured data', async (t) => {
    const { vault, world, receiver, secret, only } = await prepared(t);
    assert.equal(await deliverAll(vault), 1);
    const [got] = receiver.received;
    assert(got && isSignedWith(secret, got, world.now()));
    const { id, type, subject, timestamp } = got.json;
    assert.deepEqual(
      { id, type, subject, timestamp },
      {
        id: (await only()).message_id,
        type: 'renewal.failed',
        subject: 'web: renewal failed',
        timestamp: '2026-11-21T12:00:00Z',
      },
    );
    assert.equal(got.json.data.error, 'the CA says no');
    assert.match(got.json.text, /^ {2}Error: +the CA says no$/m);
    assert.partialDeepStrictEqual(await only(), { status: 'delivered', attempts: 1, error: null });
    world.advance(30 * day);
    assert.equal(await deliverAll(vault), 0);
  });

  test('is retried at growing intervals with the same id, and fails after three days', async (t) => {
    const { vault, world, receiver, only, log } = await prepared(t);
    receiver.answers.push(...Array.from({ length: 20 }, () => status(500)));
    const begin = world.now();
    const moments: number[] = [];
    for (let passed = 0; passed < 80 * 60; passed += 1) {
      if ((await deliverAll(vault)) > 0) moments.push((world.now() - begin) / minute);
      world.advance(minute);
    }
    assert.deepEqual(moments, [0, 1, 6, 36, 156, 516, 1236, 2676, 4116]);
    assert.equal(new Set(receiver.received.map(({ json }) => json.id)).size, 1);
    assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-timestamp'])).size, 9);
    assert.partialDeepStrictEqual(await only(), { status: 'failed', attempts: 9 });
    assert.match((await only()).error ?? '', /responded with 500$/);
    assert.equal(log.lines.filter((line) => line.includes('failed to deliver a notification')).length, 9);
    assert(!log.lines.join('\n').includes('t0ken'));
  });

  test('waits as long as a receiver asks, a day at most', () => {
    assert.equal(retryDelay(1), minute);
    assert.equal(retryDelay(1, hour), hour);
    assert.equal(retryDelay(4, minute), 2 * hour);
    assert.equal(retryDelay(1, 400 * day), day);
    assert.equal(retryDelay(1000), day);
  });

  test('is claimed by one worker at a time; a worker with an expired lease does not overwrite the result', async (t) => {
    const { vault, world, receiver, only } = await prepared(t);
    const first = await claimDelivery(vault, 'one', []);
    assert(first);
    assert.equal(await claimDelivery(vault, 'two', []), undefined);
    world.advance(2 * minute);
    const second = await claimDelivery(vault, 'two', []);
    assert(second);
    await deliver(vault, second, forever);
    receiver.answers.push(status(500));
    // The first was only slow: it sends it once more, and may not write over what is true.
    await deliver(vault, first, forever);
    assert.partialDeepStrictEqual(await only(), { status: 'delivered', attempts: 2, error: null });
    assert.equal(receiver.received.length, 2);
  });

  test('is not kept waiting by a clock that was ahead', async (t) => {
    const { vault, world, receiver } = await prepared(t);
    await deliverAll(vault);
    const next = async () => (await deliveriesOf(vault)).at(-1)?.status;
    for (const [away, days] of [
      ['failed', 1000],
      ['claimed', 2000],
    ] as const) {
      world.advance(days * day);
      await failRenewal(vault, 'web', 'no');
      if (away === 'claimed') assert(await claimDelivery(vault, 'one', []));
      else {
        receiver.answers.push(status(500));
        await deliverAll(vault);
      }
      assert.notEqual(await next(), 'delivered');
      world.advance(-days * day);
      assert.equal(await deliverAll(vault), 1, away);
      assert.equal(await next(), 'delivered');
    }
  });

  test('is queued again without counting the attempt when the worker is stopped', async (t) => {
    const { vault, receiver, only } = await prepared(t);
    const stop = new AbortController();
    receiver.answers.push(() => stop.abort());
    const claimed = await claimDelivery(vault, 'one', []);
    assert(claimed);
    await deliver(vault, claimed, stop.signal);
    assert.partialDeepStrictEqual(await only(), { status: 'queued', attempts: 0, lease_owner: null });
    assert.equal(await deliverAll(vault), 1);
  });

  test('with a 410 response disables the channel until it is enabled again', async (t) => {
    const { vault, world, receiver, only, dataDir } = await prepared(t);
    receiver.answers.push(status(410));
    await deliverAll(vault);
    assert.equal((await only()).status, 'failed');
    const row = await requireChannel(vault.db.reader, 'ops');
    assert.match(row.disabled_reason ?? '', /responded with 410/);
    assert.partialDeepStrictEqual(eventsOf(dataDir, 'notification_channel.disable'), [
      { actor: 'system', resource: 'notification-channel:ops' },
    ]);
    world.advance(7 * day);
    await failRenewal(vault, 'web', 'still no');
    assert.equal((await deliveriesOf(vault)).length, 1, 'nothing is queued for a channel that is disabled');
    await changeChannel(vault, localCli, 'ops', { disabled: false });
    world.advance(7 * day);
    await failRenewal(vault, 'web', 'still no');
    assert.equal(await deliverAll(vault), 1);
    assert.equal(receiver.received.length, 2);
  });

  test('fails with a generic error when the settings cannot be decrypted, and is logged', async (t) => {
    const { vault, receiver, only, log } = await prepared(t);
    const { id } = await requireChannel(vault.db.reader, 'ops');
    await vault.db.write((writer) => updateChannel(writer, id, { sealed_settings: Buffer.alloc(60, 1) }));
    await deliverAll(vault);
    assert.equal((await only()).error, 'internal error; see the log of the vault');
    assert(log.lines.some((line) => line.includes('failed to prepare a notification')));
    assert.equal(receiver.received.length, 0);
  });
});

suite('the log of deliveries', () => {
  test('is kept for 30 days, and pending deliveries expire', async (t) => {
    const { vault, world, only } = await prepared(t);
    await deliverAll(vault);
    world.advance(29 * day);
    await pruneDeliveries(vault);
    assert.equal((await only()).status, 'delivered');
    await changeChannel(vault, localCli, 'ops', { disabled: false });
    await failRenewal(vault, 'web', 'again');
    await changeChannel(vault, localCli, 'ops', { disabled: true });
    world.advance(3 * day);
    await pruneDeliveries(vault);
    const left = await deliveriesOf(vault);
    assert.deepEqual(
      left.map(({ status: state, error }) => [state, error]),
      [['failed', 'expired before it could be delivered']],
    );
    assert.equal((await vault.db.reader.selectFrom('notifications').selectAll().execute()).length, 1);
  });

  test('marks unsent deliveries as failed after three days without sending them', async (t) => {
    const { vault, world, receiver, only } = await prepared(t);
    world.advance(3 * day);
    assert.equal(await deliverAll(vault), 0);
    await pruneDeliveries(vault);
    assert.partialDeepStrictEqual(await only(), { status: 'failed', attempts: 0 });
    assert.equal(receiver.received.length, 0);
  });

  test('keeps at most 10,000 ended deliveries', async (t) => {
    const { vault, world } = await prepared(t);
    const [first] = await deliveriesOf(vault);
    assert(first);
    const now = world.now();
    await vault.db.write(async (writer) => {
      for (let count = 0; count < 10_600; count += 1) {
        await writer
          .insertInto('notification_deliveries')
          .values({
            ...{ notification_id: first.notification_id, channel_id: first.channel_id },
            ...{ status: 'delivered', attempts: 1, queued_at: now, next_attempt_at: now, expires_at: now },
            ended_at: now,
          })
          .execute();
      }
    });
    let rounds = 1;
    while (await pruneDeliveries(vault)) rounds += 1;
    const { count } = await vault.db.reader
      .selectFrom('notification_deliveries')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    // What waits is none of it.
    assert.equal(count, 10_001);
    assert.equal(rounds, 2);
  });
});

suite('a channel test', () => {
  test('is sent immediately even if the channel is disabled, and is recorded', async (t) => {
    const { vault, receiver, dataDir } = await prepared(t);
    await changeChannel(vault, localCli, 'ops', { disabled: true });
    await testChannel(vault, localCli, 'ops', forever);
    assert.equal(receiver.received[0]?.json.type, 'test');
    const last = (await deliveriesOf(vault)).at(-1);
    assert.partialDeepStrictEqual(last, { event: 'test', status: 'delivered', attempts: 1 });
    assert.equal(eventsOf(dataDir, 'notification_channel.test').length, 1);
  });

  test('is not retried after it was canceled', async (t) => {
    const { vault, world, receiver } = await prepared(t);
    await deliverAll(vault);
    const stop = new AbortController();
    receiver.answers.push(() => stop.abort());
    await assert.rejects(testChannel(vault, localCli, 'ops', stop.signal), /test canceled/);
    assert.partialDeepStrictEqual((await deliveriesOf(vault)).at(-1), {
      ...{ status: 'failed', attempts: 1, error: 'canceled before the receiver answered' },
    });
    world.advance(hour);
    assert.equal(await deliverAll(vault), 0);
  });

  test('is not expired by pruning while it is being sent', async (t) => {
    const { vault, receiver } = await prepared(t);
    await deliverAll(vault);
    const asked = Promise.withResolvers<ServerResponse>();
    receiver.answers.push(asked.resolve);
    const tested = testChannel(vault, localCli, 'ops', forever);
    const response = await asked.promise;
    await pruneDeliveries(vault);
    response.writeHead(204).end();
    await tested;
    assert.partialDeepStrictEqual((await deliveriesOf(vault)).at(-1), { status: 'delivered', error: null });
  });

  test('fails with the reason, and is not retried', async (t) => {
    const { vault, world, receiver } = await prepared(t);
    await deliverAll(vault);
    receiver.answers.push(status(500));
    await assert.rejects(testChannel(vault, localCli, 'ops', forever), /responded with 500$/);
    assert.partialDeepStrictEqual((await deliveriesOf(vault)).at(-1), { status: 'failed', attempts: 1 });
    world.advance(day);
    assert.equal(await deliverAll(vault), 0);
  });
});
