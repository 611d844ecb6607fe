/**
 * What the clock brings about: ends that come near are told once per degree of urgency, and overdue backups until they
 * come.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { formatTimestamp } from '../../../src/base/timestamp.ts';
import { putSetting } from '../../../src/db/tables/settings.ts';
import { revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { BackupHealth } from '../../../src/domain/backup/backup-health.ts';
import { messageText } from '../../../src/domain/notifications/notification-text.ts';
import {
  isBackupOverdue,
  notifyBackups,
  notifyExpiries,
} from '../../../src/domain/notifications/notification-watch.ts';
import { issueOwned } from '../../harness/acme/owned-certificate.ts';
import { importOne, makeKey, renewCertificate } from '../../harness/http/fixtures.ts';
import { change, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook, deliveriesOf, toldIn } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const nowhere = 'http://127.0.0.1:1/';

async function prepared(t: TestContext, channel: Record<string, unknown> = {}) {
  const opened = await testVault(t);
  await addWebhook(opened.vault, nowhere, channel);
  return opened;
}

type Prepared = Awaited<ReturnType<typeof prepared>>;

/** When something was told, in `step`s since now, while the clock goes on and is looked at every step. */
async function moments({ vault, world }: Prepared, step: number, steps: number) {
  const told: [at: number, urgency: unknown][] = [];
  for (let at = 0; at <= steps; at += 1) {
    const before = (await deliveriesOf(vault)).length;
    while ((await notifyExpiries(vault)) > 0);
    for (const { notification_id: id } of (await deliveriesOf(vault)).slice(before)) {
      const { data } = await vault.db.reader
        .selectFrom('notifications')
        .select('data')
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      told.push([at, JSON.parse(data).urgency]);
    }
    world.advance(step);
  }
  return told;
}

suite('the expiry of a certificate', () => {
  test('with automatic renewal is notified shortly before and at expiry, at any lifetime', async (t) => {
    for (const [lifetime, step] of [
      ['100d', day],
      ['200h', 2 * hour],
    ] as const) {
      const opened = await prepared(t);
      await makeCertificate(opened.vault, 'web', { lifetime });
      assert.deepEqual(await moments(opened, step, 120), [
        [95, 'emergency'],
        [100, 'over'],
      ]);
    }
  });

  test('is notified in the last quarter, with the name of the ACME client that did not renew it', async (t) => {
    const opened = await prepared(t);
    const { vault, world } = opened;
    await issueOwned(vault, ['www.example.com'], { lifetime: 100 * day, client: 'proxy' });
    world.advance(74 * day);
    assert.equal(await notifyExpiries(vault), 0);
    world.advance(2 * day);
    assert.equal(await notifyExpiries(vault), 1);
    const { data: stored, at } = await vault.db.reader
      .selectFrom('notifications')
      .select(['data', 'at'])
      .executeTakeFirstOrThrow();
    const data = JSON.parse(stored);
    const { text } = messageText('certificate.expiring', data, at);
    assert.deepEqual([data.acme_client, data.urgency], ['proxy', 'near']);
    assert.match(text, /^ +ACME client: +proxy$/m);
    assert.match(text, /ACME client proxy should have renewed it and did not\./);
    assert.match(text, /^ {2}vault certificate delete --name www\.example\.com$/m);
    assert.doesNotMatch(text, /certificate renew/);
    await issueOwned(vault, ['www.example.com'], { client: 'proxy' });
    assert.deepEqual(await toldIn(vault), [
      'certificate.expiring www.example.com',
      'certificate.recovered www.example.com',
    ]);
  });

  test('without automatic renewal is notified in the last quarter, at most 30 days ahead', async (t) => {
    const opened = await prepared(t);
    const { vault } = opened;
    await makeCertificate(vault, 'web', { lifetime: '100d' });
    await change(vault, 'web', { auto_renew: 0 });
    await importOne(vault, 'elsewhere', { chain: true });
    await makeCertificate(vault, 'old', { lifetime: '400d' });
    await change(vault, 'old', { auto_renew: 0 });
    const told = await moments(opened, day, 410);
    assert.deepEqual(
      told.map(([at, urgency]) => `${at} ${urgency}`),
      [
        ...['68 near', '75 near', '86 emergency', '90 over', '95 emergency', '100 over'],
        ...['370 near', '380 emergency', '400 over'],
      ],
    );
  });

  test('is notified as not yet valid while not_before is in the future', async (t) => {
    const opened = await prepared(t);
    const { vault, world } = opened;
    world.advance(365 * day);
    await makeCertificate(vault, 'web', { lifetime: '100d' });
    const { not_before: begin } = await vault.db.reader
      .selectFrom('certificate_versions')
      .select('not_before')
      .executeTakeFirstOrThrow();
    world.advance(begin - world.now() - 5 * minute - 1);
    assert.equal(await notifyExpiries(vault), 1);
    const { data, at } = await vault.db.reader
      .selectFrom('notifications')
      .select(['data', 'at'])
      .executeTakeFirstOrThrow();
    const { subject, text } = messageText('certificate.expiring', JSON.parse(data), at);
    assert.equal(subject, `web is not valid before ${formatTimestamp(begin)}`);
    assert.match(text, /^Check the clock, then renew:$/m);
    assert.equal(await notifyExpiries(vault), 0);
    world.advance(1);
    assert.equal(await notifyExpiries(vault), 1);
    assert.deepEqual(await toldIn(vault), ['certificate.expiring web']);
  });

  test('recovers with a new version, and is notified again for that version', async (t) => {
    const opened = await prepared(t);
    const { vault, world } = opened;
    await makeCertificate(vault, 'web', { lifetime: '100d' });
    world.advance(96 * day);
    await notifyExpiries(vault);
    await renewCertificate(vault, 'web');
    assert.equal(await notifyExpiries(vault), 0);
    world.advance(96 * day);
    await notifyExpiries(vault);
    assert.deepEqual(await toldIn(vault), [
      ...['certificate.expiring web', 'certificate.recovered web', 'certificate.expiring web'],
    ]);
  });

  test('is ignored if the certificate is disabled, even after a notification', async (t) => {
    const { vault, world } = await prepared(t);
    await makeCertificate(vault, 'web', { lifetime: '100d' });
    world.advance(96 * day);
    await notifyExpiries(vault);
    await change(vault, 'web', { disabled_at: world.now() });
    assert.equal(await notifyExpiries(vault), 1);
    assert.equal(await notifyExpiries(vault), 0);
    world.advance(10 * day);
    assert.equal(await notifyExpiries(vault), 0);
    assert.deepEqual(await toldIn(vault), ['certificate.expiring web']);
    await change(vault, 'web', { disabled_at: null });
    await notifyExpiries(vault);
    assert.equal((await toldIn(vault)).length, 2);
  });

  test('is checked in batches of ten, and a failed batch is read again', async (t) => {
    const { vault, world } = await prepared(t);
    for (let count = 0; count < 25; count += 1) await makeCertificate(vault, `web${count}`);
    world.advance(1000 * day);
    const lookedAt = { certificates: 0, api_keys: 0 };
    const look = () => notifyExpiries(vault, lookedAt, 10);
    assert.equal(await look(), 10);
    const failure = t.mock.method(vault.db, 'write', () => Promise.reject(new Error('no')));
    await assert.rejects(look(), /^Error: no$/);
    failure.mock.restore();
    assert.deepEqual([await look(), await look()], [10, 5]);
    assert.equal(new Set(await toldIn(vault)).size, 25);
    assert.deepEqual([await look(), lookedAt], [0, { certificates: 0, api_keys: 0 }]);
    await makeCertificate(vault, 'late');
    world.advance(1000 * day);
    assert.deepEqual([await look(), await look(), await look()], [0, 0, 1]);
  });

  test('is notified for each of 130 certificates in two transactions', async (t) => {
    const { vault, world } = await prepared(t);
    for (let count = 0; count < 130; count += 1) await makeCertificate(vault, `web${count}`);
    world.advance(1000 * day);
    const write = t.mock.method(vault.db, 'write');
    assert.equal(await notifyExpiries(vault), 130);
    assert.equal(write.mock.callCount(), 2);
    assert.equal(await notifyExpiries(vault), 0);
    assert.equal(write.mock.callCount(), 2);
    assert.equal(new Set(await toldIn(vault)).size, 130);
  });
});

suite('the expiry of an API key', () => {
  test('is notified in the last quarter (at most 15 days ahead), a day ahead, and at expiry', async (t) => {
    const opened = await prepared(t);
    const { vault, world } = opened;
    await makeKey(vault, { name: 'forever' });
    const until = (days: number) => formatTimestamp(world.now() + days * day);
    await makeKey(vault, { name: 'web', expires_at: until(40) });
    await makeKey(vault, { name: 'year', expires_at: until(365) });
    assert.deepEqual(await moments(opened, day, 370), [
      ...[
        [30, 'near'],
        [39, 'emergency'],
        [40, 'over'],
      ],
      ...[
        [350, 'near'],
        [364, 'emergency'],
        [365, 'over'],
      ],
    ]);
  });

  test('is not notified for a revoked key, and the certificate filter of the channel applies', async (t) => {
    const { vault, world } = await prepared(t, { certificates: ['mail*'] });
    await makeCertificate(vault, 'web');
    await makeCertificate(vault, 'mail1');
    const expires_at = formatTimestamp(world.now() + 40 * day);
    for (const name of ['web', 'mail1', '*']) {
      await makeKey(vault, { name: `for ${name}`, certificates: [name], expires_at });
    }
    const revoked = await makeKey(vault, { name: 'revoked', expires_at });
    await revokeApiKey(vault, localCli, revoked.id);
    world.advance(35 * day);
    await notifyExpiries(vault);
    const keys = (await toldIn(vault)).filter((told) => told.startsWith('api_key'));
    assert.deepEqual(keys, ['api_key.expiring for mail1', 'api_key.expiring for *']);
  });
});

suite('backups', () => {
  const plan = { directory: '/backup', every: day, keep: 7 };

  test('are overdue an hour after their time, or a period after it where that is shorter', () => {
    assert.equal(isBackupOverdue(undefined, plan, 0), true);
    assert.equal(isBackupOverdue(0, plan, day + hour), false);
    assert.equal(isBackupOverdue(0, plan, day + hour + 1), true);
    assert.equal(isBackupOverdue(0, { every: 5 * minute }, 10 * minute), false);
    assert.equal(isBackupOverdue(0, { every: 5 * minute }, 10 * minute + 1), true);
  });

  test('are notified when overdue, again at growing intervals, and once when they recover', async (t) => {
    const { vault, world } = await prepared(t);
    const since = world.now();
    const told: number[] = [];
    for (let at = 0; at < 24 * 12; at += 1) {
      const before = (await toldIn(vault)).length;
      await notifyBackups(vault, plan, since);
      if ((await toldIn(vault)).length > before) told.push(at);
      world.advance(hour);
    }
    assert.deepEqual(told, [2, 8, 32, 80, 176]);
    await vault.db.write((writer) => putSetting(writer, 'last-backup-at', world.now()));
    await notifyBackups(vault, plan, since);
    await notifyBackups(vault, plan, since);
    assert.equal((await toldIn(vault)).at(-1), 'backup.recovered');
    assert.equal((await toldIn(vault)).length, told.length + 1);
  });

  test('are overdue an hour after a restart at the earliest, and a restart does not end the alarm', async (t) => {
    const { vault, world } = await prepared(t);
    const put = () => vault.db.write((writer) => putSetting(writer, 'last-backup-at', world.now()));
    await put();
    world.advance(3 * day);
    let since = world.now();
    await notifyBackups(vault, plan, since);
    world.advance(hour);
    await notifyBackups(vault, plan, since);
    assert.deepEqual(await toldIn(vault), []);
    world.advance(minute);
    await notifyBackups(vault, plan, since);
    assert.deepEqual(await toldIn(vault), ['backup.overdue']);
    since = world.now();
    await notifyBackups(vault, plan, since);
    assert.deepEqual(await toldIn(vault), ['backup.overdue'], 'a new start is no new backup');
    await put();
    await notifyBackups(vault, plan, since);
    assert.deepEqual(await toldIn(vault), ['backup.overdue', 'backup.recovered']);
  });

  test('are notified when set aside, immediately and only once, and recover with an accepted backup', async (t) => {
    const { vault, world } = await prepared(t);
    await vault.db.write((writer) => putSetting(writer, 'last-backup-at', world.now()));
    const since = world.now();
    const before = { certificates: 4, versions: 9 };
    vault.backupHealth.looked({
      path: '/b/x.smaller.backup',
      holds: { certificates: 1, versions: 1 },
      before,
    });
    await notifyBackups(vault, plan, since);
    await notifyBackups(vault, plan, since);
    assert.deepEqual(await toldIn(vault), ['backup.overdue']);
    const { data } = await vault.db.reader
      .selectFrom('notifications')
      .select('data')
      .executeTakeFirstOrThrow();
    assert.deepEqual(JSON.parse(data).set_aside.before, before);
    const afresh = { ...vault, backupHealth: new BackupHealth() };
    // As a worker that starts hears it from the others.
    afresh.backupHealth.failed();
    await notifyBackups(afresh, plan, since);
    vault.backupHealth.failed();
    await notifyBackups(vault, plan, since);
    assert.deepEqual(await toldIn(vault), ['backup.overdue'], 'neither a start nor another failure ends it');
    vault.backupHealth.looked(undefined);
    await notifyBackups(vault, plan, since);
    assert.deepEqual(await toldIn(vault), ['backup.overdue', 'backup.recovered']);
  });

  test('are ignored when the schedule is removed', async (t) => {
    const { vault, world } = await prepared(t);
    const since = world.now();
    await notifyBackups(vault, undefined, since);
    world.advance(10 * day);
    await notifyBackups(vault, plan, since);
    await notifyBackups(vault, undefined, since);
    world.advance(10 * day);
    await notifyBackups(vault, undefined, since);
    assert.deepEqual(await toldIn(vault), ['backup.overdue']);
    await notifyBackups(vault, plan, since);
    assert.deepEqual(await toldIn(vault), ['backup.overdue', 'backup.overdue']);
  });
});
