/** Channels as they are added and changed: secrets sealed and never said again, everything recorded. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import {
  addChannel,
  changeChannel,
  removeChannel,
  requireChannel,
  testChannel,
} from '../../../src/domain/notifications/notification-channels.ts';
import {
  createChannelInput,
  updateChannelInput,
} from '../../../src/domain/notifications/notification-inputs.ts';
import { viewChannels } from '../../../src/domain/notifications/notification-views.ts';
import { channelSettingsOwner, openFor } from '../../../src/domain/sealed-secrets.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { forever, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook, failRenewal, written } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const url = 'https://hooks.a.test/x?token=t0ken';
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

async function settingsOf(vault: Vault, name: string): Promise<Record<string, unknown>> {
  const row = await requireChannel(vault.db.reader, name);
  return JSON.parse(openFor(vault, channelSettingsOwner(row.id), row.sealed_settings).expose().toString());
}

suite('a channel', () => {
  test('is added with sealed settings, and shown without them', async (t) => {
    const { vault, dataDir } = await testVault(t);
    const made = await addWebhook(vault, url, { certificates: ['web*', 'web*'], digest_at: '07:00' });
    assert.match(made, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.deepEqual(await settingsOf(vault, 'ops'), { url, secret: made });
    const [view] = await viewChannels(vault);
    assert.deepEqual(view, {
      name: 'ops',
      type: 'webhook',
      target: 'https://hooks.a.test',
      events: [
        'renewal.failed',
        'certificate.expiring',
        'api_key.expiring',
        'private_ca.expiring',
        'backup.overdue',
        'disk.low',
        'deployment.unhealthy',
        'endpoint.unhealthy',
        'scan.found',
        'pending_change.created',
      ],
      certificates: ['web*'],
      ...{ certificate_labels: [], labels: [] },
      digest_at: '07:00',
      digest_days: 14,
      created_at: '2026-11-21T12:00:00Z',
      disabled_at: null,
      disabled_reason: null,
      waiting: 0,
      last_delivery: null,
    });
    const told = JSON.stringify([view, eventsOf(dataDir, 'notification_channel.create')]);
    assert(told.includes('hooks.a.test') && !told.includes('t0ken') && !told.includes(made));
    await assert.rejects(addWebhook(vault, url), /a notification channel named ops already exists/);
  });

  test('shows the last delivery while 25 notifications are pending', async (t) => {
    const receiver = await webhookReceiver(t);
    const { vault } = await testVault(t);
    await addWebhook(vault, receiver.url);
    await testChannel(vault, localCli, 'ops', forever);
    for (let count = 0; count < 25; count += 1) {
      await makeCertificate(vault, `web${count}`);
      await failRenewal(vault, `web${count}`, 'no');
    }
    const [view] = await viewChannels(vault);
    assert.partialDeepStrictEqual(view, {
      waiting: 25,
      last_delivery: { event: 'test', status: 'delivered' },
    });
  });

  test('keeps a secret given in YAML settings instead of generating one', async (t) => {
    const { vault } = await testVault(t);
    const input = parseInput(createChannelInput, { name: 'ops', type: 'webhook' });
    const yaml = new Secret(Buffer.from(`url: ${url}\nsecret: ${secret}\n`));
    assert.equal(await addChannel(vault, localCli, input, yaml), undefined);
    assert.deepEqual(await settingsOf(vault, 'ops'), { url, secret });
  });

  test('with missing, invalid or unknown settings is rejected without their values, and not added', async (t) => {
    const { vault } = await testVault(t);
    const wrong: [type: string, settings: object, message: RegExp][] = [
      ['webhook', {}, /^invalid settings for webhook: url is missing/],
      ['webhook', { url: 'http://a.test/t0ken' }, /url must be an https:\/\/ URL/],
      ['webhook', { url, secret: 't0ken' }, /secret must be whsec_ followed by 24 to 64 bytes/],
      ['webhook', { url, color: 't0ken' }, /unknown/],
      ['email', { host: 'a.test', from: 'v@a.test' }, /to is missing/],
      ['exec', { command: ['t0ken'] }, /command must begin with an absolute path/],
      ['webhok', {}, /^unknown notification channel type "webhok"/],
    ];
    for (const [type, settings, message] of wrong) {
      const input = parseInput(createChannelInput, { name: 'ops', type });
      await assert.rejects(addChannel(vault, localCli, input, written(settings)), (error: Error) => {
        assert.match(error.message, message);
        return !error.message.includes('t0ken');
      });
    }
    assert.deepEqual(await viewChannels(vault), []);
  });

  test('keeps unchanged fields on update, and gets a new secret with new settings', async (t) => {
    const { vault, world, dataDir } = await testVault(t);
    const first = await addWebhook(vault, url, { digest_at: '07:00' });
    const change = (changes: object, settings?: object) =>
      changeChannel(
        vault,
        localCli,
        'ops',
        parseInput(updateChannelInput, changes),
        settings && written(settings),
      );
    await change({ events: ['certificate.issued'], digest_at: null, disabled: true });
    let row = await requireChannel(vault.db.reader, 'ops');
    assert.partialDeepStrictEqual(row, { digest_at: null, next_digest_at: null, disabled_at: world.now() });
    assert.equal(row.events, '["certificate.issued"]');
    await change({ digest_at: '08:00', certificates: ['*', 'web'], disabled: false });
    row = await requireChannel(vault.db.reader, 'ops');
    assert.partialDeepStrictEqual(row, { disabled_at: null, certificates: '[]' });
    assert.equal(row.next_digest_at, Date.parse('2026-11-22T08:00:00Z'));
    const made = await change({}, { url: 'https://thief.a.test/' });
    assert(made && made.expose() !== first);
    assert.deepEqual(await settingsOf(vault, 'ops'), {
      url: 'https://thief.a.test/',
      secret: made.expose(),
    });
    const events = eventsOf(dataDir, 'notification_channel.update');
    assert.deepEqual(events.at(-1)?.detail, { target: 'https://thief.a.test' });
    assert.equal(events.length, 3);
    await assert.rejects(change({}, { url: 'nowhere' }), /url must be/);
    await assert.rejects(changeChannel(vault, localCli, 'obs', {}), (error: Error) => {
      assert.match(error.message, /Unknown notification channel "obs"/);
      return true;
    });
  });

  test('is removed with its pending deliveries', async (t) => {
    const { vault, dataDir } = await testVault(t);
    await addWebhook(vault, url);
    await makeCertificate(vault, 'web');
    await failRenewal(vault, 'web', 'no');
    assert.equal((await viewChannels(vault))[0]?.waiting, 1);
    await removeChannel(vault, localCli, 'ops');
    assert.deepEqual(await vault.db.reader.selectFrom('notification_deliveries').selectAll().execute(), []);
    assert.equal(eventsOf(dataDir, 'notification_channel.delete').length, 1);
    await assert.rejects(removeChannel(vault, localCli, 'ops'), /Unknown notification channel/);
  });
});

test('invalid channel fields are rejected, and events are sorted and deduplicated', () => {
  const valid = { name: 'ops', type: 'webhook' };
  const wrong: [object, RegExp][] = [
    [{ name: 'a b' }, /name/],
    [{ events: ['renewal.recovered'] }, /"renewal\.recovered" is not an event; use one of renewal\.failed/],
    [{ certificates: ['web[12]'] }, /a pattern has up to 128 letters/],
    [{ certificates: Array.from({ length: 101 }, (_, at) => `web${at}`) }, /at most 100 patterns/],
    [{ digest_at: '24:00' }, /the time of a digest is HH:MM in UTC/],
    [{ digest_at: '7:00' }, /the time of a digest/],
    [{ digest_days: 0 }, /at least 1 day/],
    [{ digest_days: 91 }, /at most 90 days/],
    [{ secret: 'x' }, /unknown field/],
  ];
  for (const [part, message] of wrong) {
    assert.throws(() => parseInput(createChannelInput, { ...valid, ...part }), message);
  }
  const { events } = parseInput(createChannelInput, {
    ...valid,
    events: ['certificate.issued', 'renewal.failed', 'renewal.failed'],
  });
  assert.deepEqual(events, ['renewal.failed', 'certificate.issued']);
});
