/**
 * Many notices at once: people get a few mails and then one for all the rest, programs each of them, and nothing is
 * lost.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { minute, second } from '../../../src/base/duration.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import {
  addChannel,
  requireChannel,
  testChannel,
} from '../../../src/domain/notifications/notification-channels.ts';
import { claimDelivery } from '../../../src/domain/notifications/notification-claim.ts';
import { deliver } from '../../../src/domain/notifications/notification-delivery.ts';
import type { Notice } from '../../../src/domain/notifications/notification-events.ts';
import { createChannelInput } from '../../../src/domain/notifications/notification-inputs.ts';
import { notify, notifyChannel } from '../../../src/domain/notifications/notification-queue.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { status, webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { forever } from '../../harness/issuance/renewal-fixtures.ts';
import { fakeChatApi } from '../../harness/notifications/fake-chat-api.ts';
import { addWebhook, deliverAll, deliveriesOf, written } from '../../harness/notifications/fixtures.ts';
import { smtpServer } from '../../harness/notifications/smtp-server.ts';
import { testVault } from '../../harness/test-vault.ts';

async function prepared(t: TestContext) {
  const server = await smtpServer(t, { security: 'none' });
  const opened = await testVault(t);
  const { vault } = opened;
  const settings = {
    host: '127.0.0.1',
    port: server.port,
    security: 'none',
    from: 'v@a.test',
    to: ['o@a.test'],
  };
  const input = parseInput(createChannelInput, { name: 'mail', type: 'email' });
  await addChannel(vault, localCli, input, written(settings));
  return { ...opened, server };
}

function failed(name: string): Notice {
  const data = {
    certificate: name,
    error: 'the CA is down',
    failed_attempts: 1,
    domains: [],
    told_before: 0,
  };
  return { event: 'renewal.failed', about: name, certificates: [name], data };
}

async function fail({ db, world }: Vault, from: number, to: number) {
  await db.write(async (writer) => {
    for (let count = from; count <= to; count += 1) await notify(world, writer, failed(`web${count}`));
  });
}

const states = async (vault: Vault) =>
  Object.fromEntries(
    [...Map.groupBy(await deliveriesOf(vault), ({ status }) => status)].map(([one, rows]) => [
      one,
      rows.length,
    ]),
  );

const subjectOf = (text: string) => /^Subject: (.*(?:\n .*)*)$/m.exec(text)?.[1]?.replaceAll('\n ', ' ');
const idOf = (text: string) => /^Message-ID: (.*)$/m.exec(text)?.[1];

/** How long a notice waits for others. */
const window = 30 * second;

suite('gathered notices', () => {
  test('are sent as one mail for failures within 30 seconds, and as one mail for later recoveries', async (t) => {
    const { vault, world, server } = await prepared(t);
    for (let count = 1; count <= 300; count += 1) {
      await fail(vault, count, count);
      world.advance(90);
      assert.equal(await deliverAll(vault), 0);
    }
    world.advance(window - 300 * 90 - 1);
    assert.equal(await deliverAll(vault), 0);
    world.advance(1);
    assert.equal(await deliverAll(vault), 1);
    assert.equal(subjectOf(server.mails[0]?.text ?? ''), '300 notices: renewal failed (300)');
    assert.deepEqual(await states(vault), { delivered: 300 });
    const recovered = (name: string) => ({ ...failed(name), event: 'renewal.recovered' as const });
    await vault.db.write(async (writer) => {
      for (let count = 1; count <= 300; count += 1) await notify(world, writer, recovered(`web${count}`));
    });
    world.advance(15 * minute);
    assert.equal(await deliverAll(vault), 1);
    assert.equal(subjectOf(server.mails[1]?.text ?? ''), '300 notices: renewal recovered (300)');
  });

  test('are sent as one chat message', async (t) => {
    const { vault, world } = await testVault(t);
    const api = await fakeChatApi(t);
    const input = parseInput(createChannelInput, { name: 'ops', type: 'slack' });
    await addChannel(vault, localCli, input, written({ url: `${api.origin}/hook` }));
    await fail(vault, 1, 300);
    assert.equal(await deliverAll(vault), 0);
    world.advance(window);
    assert.equal(await deliverAll(vault), 1);
    assert.match(api.calls[0]?.body ?? '', /300 notices: renewal failed \(300\)/);
    assert.match(api.calls[0]?.body ?? '', /web1: renewal failed: the CA is down/);
  });

  test('are sent as five separate mails, and 15 minutes later as one mail with types and counts', async (t) => {
    const { vault, world, server } = await prepared(t);
    for (let count = 1; count <= 5; count += 1) {
      await fail(vault, count, count);
      world.advance(window);
      assert.equal(await deliverAll(vault), 1);
    }
    await fail(vault, 6, 500);
    world.advance(window);
    assert.equal(await deliverAll(vault), 0);
    world.advance(12 * minute);
    const overdue = { event: 'backup.overdue', about: null, certificates: null } as const;
    await vault.db.write((writer) => notify(world, writer, { ...overdue, data: { last_backup_at: null } }));
    assert.equal(await deliverAll(vault), 0);
    world.advance(minute);
    assert.equal(await deliverAll(vault), 1);
    assert.equal(server.mails.length, 6);
    const text = server.mails.at(-1)?.text ?? '';
    assert.equal(subjectOf(text), '496 notices: renewal failed (495), backup overdue (1)');
    assert.match(text, /^From 2026-11-21T12:02:30Z to 2026-11-21T12:15:00Z\.$/m);
    assert.match(text, /^renewal failed \(495\):\n\n {2}web6: renewal failed: the CA is down\n {2}web7: /m);
    assert.match(text, /^ {2}and 395 more\n\nbackup overdue \(1\):\n\n {2}no backup yet$/m);
    assert.match(text, /^ {2}vault notification log --channel mail --limit 1000$/m);
    assert.deepEqual(await states(vault), { delivered: 501 });
    await fail(vault, 501, 501);
    assert.equal(await deliverAll(vault), 0, 'the next one waits again');
    world.advance(15 * minute);
    assert.equal(await deliverAll(vault), 1);
    assert.equal(subjectOf(server.mails.at(-1)?.text ?? ''), 'web501: renewal failed');
  });

  test('are retried as one mail with the same id', async (t) => {
    const { vault, world, server } = await prepared(t);
    await fail(vault, 1, 3);
    world.advance(window);
    server.answers.set('DATA', '451 later');
    assert.equal(await deliverAll(vault), 1);
    assert.deepEqual(await states(vault), { queued: 3 });
    for (const row of await deliveriesOf(vault)) {
      assert.partialDeepStrictEqual(row, { attempts: 1, next_attempt_at: world.now() + minute });
      assert.match(row.error ?? '', /responded with 451 to DATA/);
    }
    const ids: (string | undefined)[] = [];
    for (const _ of [1, 2]) {
      world.advance(2 * minute);
      const claimed = await claimDelivery(vault, 'one', []);
      assert(claimed);
      // The first one dies before it can say that it was taken.
      if (ids.length > 0) await deliver(vault, claimed, forever);
      else await deliver({ ...vault, db: deadAfterwards(vault.db) }, claimed, forever).catch(() => undefined);
      ids.push(idOf(server.mails.at(-1)?.text ?? ''));
    }
    assert.equal(server.mails.length, 2);
    assert.equal(ids[0], ids[1]);
    assert.deepEqual(await states(vault), { delivered: 3 });
  });

  test('are queued again when the vault is stopped while sending', async (t) => {
    const { vault, world, server } = await prepared(t);
    await fail(vault, 1, 3);
    world.advance(window);
    const claimed = await claimDelivery(vault, 'one', []);
    assert(claimed);
    await deliver(vault, claimed, AbortSignal.abort());
    for (const row of await deliveriesOf(vault)) {
      assert.partialDeepStrictEqual(row, { status: 'queued', attempts: 0, lease_owner: null });
    }
    assert.equal(await deliverAll(vault), 1);
    assert.equal(server.mails.length, 1);
  });

  test('do not include digests, and channel tests are neither delayed nor counted', async (t) => {
    const { vault, world, server } = await prepared(t);
    for (let count = 0; count < 6; count += 1) await testChannel(vault, localCli, 'mail', forever);
    await fail(vault, 1, 2);
    const lists = { issued: ['web'], failing: [], expiring: [], api_keys: [], backup_overdue_since: null };
    const counts = { issued: 1, failing: 0, expiring: 0, api_keys: 0 };
    await vault.db.write(async (writer) => {
      const channel = await requireChannel(writer, 'mail');
      const data = { from: '', until: '', days: 14, counts, ...lists };
      await notifyChannel(world, writer, channel, { event: 'digest', about: null, certificates: null, data });
    });
    world.advance(window);
    await deliverAll(vault);
    const subjects = server.mails.slice(6).map(({ text }) => subjectOf(text));
    assert.deepEqual(subjects.sort(), ['2 notices: renewal failed (2)', 'digest: 1 issued']);
    await fail(vault, 3, 10);
    world.advance(window);
    await deliverAll(vault);
    await testChannel(vault, localCli, 'mail', forever);
    assert.equal(subjectOf(server.mails.at(-1)?.text ?? ''), 'test notification');
  });
});

test('programs are notified of each event separately, with any number of events', async (t) => {
  const receiver = await webhookReceiver(t);
  const { vault } = await testVault(t);
  await addWebhook(vault, receiver.url);
  await fail(vault, 1, 20);
  assert.equal(await deliverAll(vault), 20);
  assert.equal(new Set(receiver.received.map(({ json }) => json.data.certificate)).size, 20);
});

suite('a channel that failed', () => {
  test('pauses until its delivery is due again instead of attempting all 300, and later delivers all', async (t) => {
    const receiver = await webhookReceiver(t);
    const { vault, world } = await testVault(t);
    await addWebhook(vault, receiver.url);
    await fail(vault, 1, 300);
    receiver.answers.push(...Array.from({ length: 4 }, () => status(503)));
    assert.equal(await deliverAll(vault), 1, 'one attempt finds out');
    await fail(vault, 301, 301);
    world.advance(minute - 1);
    assert.equal(await deliverAll(vault), 0, 'new notices wait too');
    world.advance(1);
    assert.equal(await deliverAll(vault), 1);
    // Each of these is the first attempt of another notice, or a retry; never more than one at a time.
    for (const _ of [1, 2]) {
      world.advance(5 * minute);
      assert.equal(await deliverAll(vault), 1);
    }
    assert.equal(receiver.received.length, 4);
    world.advance(5 * minute);
    await deliverAll(vault);
    world.advance(30 * minute);
    await deliverAll(vault);
    assert.deepEqual(await states(vault), { delivered: 301 });
  });

  test('pauses at most five minutes despite Retry-After, and resumes after a successful test', async (t) => {
    const receiver = await webhookReceiver(t);
    const { vault, world } = await testVault(t);
    await addWebhook(vault, receiver.url);
    receiver.answers.push(status(429, { 'retry-after': '7200' }));
    await fail(vault, 1, 1);
    assert.equal(await deliverAll(vault), 1);
    await fail(vault, 2, 3);
    world.advance(5 * minute - 1);
    assert.equal(await deliverAll(vault), 0);
    world.advance(1);
    assert.equal(await deliverAll(vault), 2);
    receiver.answers.push(status(500));
    world.advance(1);
    await fail(vault, 4, 5);
    assert.equal(await deliverAll(vault), 1);
    await testChannel(vault, localCli, 'ops', forever);
    assert.equal(await deliverAll(vault), 1, 'the test was accepted');
  });

  test('does not delay other channels', async (t) => {
    const [broken, sound] = [await webhookReceiver(t), await webhookReceiver(t)];
    const { vault } = await testVault(t);
    await addWebhook(vault, broken.url);
    await addWebhook(vault, sound.url, { name: 'sound' });
    broken.answers.push(status(500));
    await fail(vault, 1, 5);
    assert.equal(await deliverAll(vault), 6);
    assert.equal(sound.received.length, 5);
  });
});

/** A database that can be read, and not be written to any more. */
function deadAfterwards(db: Vault['db']): Vault['db'] {
  return new Proxy(db, {
    get: (target, name) => {
      if (name === 'write') return () => Promise.reject(new Error('killed'));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
