/**
 * Digests: at their time once a day, about what happened since the last one, and silent where there is nothing to say.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { formatTimestamp } from '../../../src/base/timestamp.ts';
import { nextDigestAt, queueDigests } from '../../../src/domain/notifications/notification-digest.ts';
import { messageText } from '../../../src/domain/notifications/notification-text.ts';
import { importOne, makeKey, renewCertificate } from '../../harness/http/fixtures.ts';
import { change, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook, failRenewal, toldIn } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const nowhere = 'http://127.0.0.1:1/';

async function prepared(t: TestContext, channel: Record<string, unknown> = {}) {
  const opened = await testVault(t);
  await addWebhook(opened.vault, nowhere, { digest_at: '07:00', events: [], ...channel });
  return opened;
}

async function lastDigest({ vault }: Pick<Awaited<ReturnType<typeof testVault>>, 'vault'>) {
  const row = await vault.db.reader
    .selectFrom('notifications')
    .select(['data', 'at'])
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
  return { data: JSON.parse(row.data) as Record<string, unknown>, at: row.at };
}

test('the next digest comes at its time in UTC, today or tomorrow', () => {
  const at = (text: string) => Date.parse(`2026-11-${text}Z`);
  const cases: [time: string, now: string, next: string][] = [
    ['07:00', '21T06:59:59', '21T07:00:00'],
    ['07:00', '21T07:00:00', '22T07:00:00'],
    ['00:00', '21T12:00:00', '22T00:00:00'],
    ['23:59', '21T12:00:00', '21T23:59:00'],
  ];
  for (const [time, now, next] of cases)
    assert.equal(nextDigestAt(time, at(now)), at(next), `${time} ${now}`);
});

suite('a digest', () => {
  test('lists issued, failing and expiring objects, and is queued once at its time', async (t) => {
    const opened = await prepared(t);
    const { vault, world } = opened;
    await makeCertificate(vault, 'web');
    await makeCertificate(vault, 'mail', { lifetime: '1000d' });
    await makeCertificate(vault, 'short', { lifetime: '24h' });
    await importOne(vault, 'elsewhere', { chain: true });
    await makeKey(vault, { name: 'agent', expires_at: formatTimestamp(world.now() + 10 * day) });
    await makeKey(vault, { name: 'later', expires_at: formatTimestamp(world.now() + 20 * day) });
    await failRenewal(vault, 'mail', 'the CA says no');
    world.advance(18 * hour);
    assert.equal(await queueDigests(vault), 0);
    world.advance(hour);
    assert.equal(await queueDigests(vault), 1);
    assert.equal(await queueDigests(vault), 0);
    const { data, at } = await lastDigest(opened);
    assert.deepEqual(data, {
      from: '2026-11-21T07:00:00Z',
      until: '2026-11-22T07:00:00Z',
      days: 14,
      counts: { issued: 4, failing: 1, expiring: 1, api_keys: 1 },
      issued: ['elsewhere', 'mail', 'short', 'web'],
      failing: [{ certificate: 'mail', error: 'the CA says no' }],
      expiring: [{ certificate: 'short', expires_at: '2026-11-22T11:55:00Z' }],
      api_keys: [{ id: 1, name: 'agent', expires_at: '2026-12-01T12:00:00Z' }],
      backup_overdue_since: null,
    });
    const { subject, text } = messageText('digest', data, at);
    assert.equal(subject, 'digest: 3 problems, 4 issued');
    assert.match(text, /^Failing renewals:\n\n {2}mail: the CA says no$/m);
    assert.match(text, /^ {2}short: 2026-11-22T11:55:00Z \(in 4 hours\)$/m);
    assert.match(text, /^ {2}agent \(id 1\): 2026-12-01T12:00:00Z \(in 9 days\)$/m);
  });

  test('covers the time since the last digest, and is not sent when empty', async (t) => {
    const opened = await prepared(t);
    const { vault, world } = opened;
    await makeCertificate(vault, 'web', { lifetime: '1000d' });
    world.advance(19 * hour);
    assert.equal(await queueDigests(vault), 1);
    world.advance(day);
    assert.equal(await queueDigests(vault), 0);
    await renewCertificate(vault, 'web');
    world.advance(5 * day);
    assert.equal(await queueDigests(vault), 1);
    assert.partialDeepStrictEqual((await lastDigest(opened)).data, {
      from: '2026-11-23T07:00:00Z',
      until: '2026-11-28T07:00:00Z',
      issued: ['web'],
    });
    assert.deepEqual(await toldIn(vault), ['digest', 'digest']);
  });

  test('lists only certificates that match the channel filter, and no healthy ones as failing', async (t) => {
    const opened = await prepared(t, { certificates: ['web*'], digest_days: 90 });
    const { vault, world } = opened;
    await makeCertificate(vault, 'web1');
    await makeCertificate(vault, 'mail1');
    await failRenewal(vault, 'mail1', 'no');
    world.advance(19 * hour);
    await queueDigests(vault);
    const { data } = await lastDigest(opened);
    assert.partialDeepStrictEqual(data, { issued: ['web1'] });
    assert.deepEqual([data.failing, data.expiring], [[], []]);
  });

  test('counts each certificate once and lists at most 100', async (t) => {
    const opened = await prepared(t);
    const { vault, world } = opened;
    for (let count = 100; count < 230; count += 1) {
      await makeCertificate(vault, `web${count}`, { lifetime: '1000d' });
      await failRenewal(vault, `web${count}`, 'the CA is down');
    }
    for (let count = 0; count < 3; count += 1) await importOne(vault, 'elsewhere', { chain: true });
    world.advance(19 * hour);
    await queueDigests(vault);
    const { data, at } = await lastDigest(opened);
    assert.partialDeepStrictEqual(data, { counts: { issued: 131, failing: 130, expiring: 0, api_keys: 0 } });
    assert.equal((data.failing as unknown[]).length, 100);
    const { subject, text } = messageText('digest', data, at);
    assert.equal(subject, 'digest: 130 problems, 131 issued');
    assert.match(
      text,
      /^ {2}web199: the CA is down\n {2}and 30 more\n\nNew versions:\n\n {2}elsewhere\n {2}web100\n/m,
    );
  });

  test('omits failing renewals of disabled certificates', async (t) => {
    const { vault, world } = await prepared(t);
    await makeCertificate(vault, 'web', { lifetime: '1000d' });
    await failRenewal(vault, 'web', 'the CA says no');
    world.advance(19 * hour);
    assert.equal(await queueDigests(vault), 1);
    await change(vault, 'web', { disabled_at: world.now() });
    world.advance(day);
    assert.equal(await queueDigests(vault), 0);
  });

  test('is rescheduled without being sent if the clock was ahead', async (t) => {
    const { vault, world } = await prepared(t);
    await makeCertificate(vault, 'web');
    world.advance(100 * day);
    await queueDigests(vault);
    const before = (await toldIn(vault)).length;
    world.advance(-100 * day);
    assert.equal(await queueDigests(vault), 0);
    world.advance(18 * hour + 59 * minute);
    assert.equal(await queueDigests(vault), 0);
    world.advance(minute);
    assert.equal(await queueDigests(vault), 1);
    assert.equal((await toldIn(vault)).length, before + 1);
  });
});
