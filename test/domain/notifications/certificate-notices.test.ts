/** What is told of renewals: in the transaction in which they end, once, at growing distances, and when it is over. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { parseInput, updateCertificateInput } from '../../../src/domain/inputs.ts';
import { fail } from '../../../src/domain/renewals/renewal-outcome.ts';
import { importOne, renewCertificate } from '../../harness/http/fixtures.ts';
import { makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import {
  addWebhook,
  begunRenewal,
  deliveriesOf,
  failRenewal,
  failure,
  toldIn,
} from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const nowhere = 'http://127.0.0.1:1/';

async function prepared(t: TestContext, channel: Record<string, unknown> = {}) {
  const opened = await testVault(t);
  await addWebhook(opened.vault, nowhere, channel);
  await makeCertificate(opened.vault, 'web');
  return opened;
}

suite('a renewal that fails', () => {
  test('is notified immediately with the error, then at growing intervals, and once when it recovers', async (t) => {
    const { vault, world } = await prepared(t);
    const told: number[] = [];
    const begin = world.now();
    // As it is tried: after 1, 10, 100 minutes, then daily.
    for (const wait of [0, minute, 10 * minute, 100 * minute, ...Array<number>(20).fill(day)]) {
      world.advance(wait);
      const before = (await toldIn(vault)).length;
      await failRenewal(vault, 'web', 'the CA says no');
      if ((await toldIn(vault)).length > before) told.push(Math.round((world.now() - begin) / hour));
    }
    assert.deepEqual(told, [0, 26, 50, 98, 194, 362]);
    const [first, second] = await deliveriesOf(vault);
    const dataOf = async (id = 0) => {
      const row = await vault.db.reader
        .selectFrom('notifications')
        .select('data')
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      return JSON.parse(row.data) as Record<string, unknown>;
    };
    assert.partialDeepStrictEqual(await dataOf(first?.notification_id), {
      certificate: 'web',
      domains: ['web.example.test'],
      issuer: 'local-ca',
      error: 'the CA says no',
      failed_attempts: 1,
      since: '2026-11-21T12:00:00Z',
      next_attempt_at: '2026-11-21T12:01:00Z',
      told_before: 0,
    });
    assert.partialDeepStrictEqual(await dataOf(second?.notification_id), {
      failed_attempts: 5,
      since: '2026-11-21T12:00:00Z',
      told_before: 1,
    });
    await renewCertificate(vault, 'web');
    await renewCertificate(vault, 'web');
    assert.deepEqual((await toldIn(vault)).slice(told.length), ['renewal.recovered web']);
    await failRenewal(vault, 'web', 'again');
    assert.equal((await toldIn(vault)).at(-1), 'renewal.failed web');
  });

  test('is not notified when its transaction is rolled back', async (t) => {
    const { vault } = await prepared(t);
    const attempt = await begunRenewal(vault, 'web');
    const ending = vault.db.write(async (writer) => {
      await fail(vault, writer, attempt, failure('no'));
      throw new Error('the disk is full');
    });
    await assert.rejects(ending, /the disk is full/);
    assert.deepEqual(await toldIn(vault), []);
    await vault.db.write((writer) => fail(vault, writer, attempt, failure('no')));
    await vault.db.write((writer) => fail(vault, writer, attempt, failure('no')));
    assert.deepEqual(await toldIn(vault), ['renewal.failed web']);
  });

  test('is notified again soon if the clock was ahead at the last notification', async (t) => {
    const { vault, world } = await prepared(t);
    world.advance(1000 * day);
    await failRenewal(vault, 'web', 'no');
    world.advance(-1000 * day);
    await failRenewal(vault, 'web', 'no');
    assert.equal((await toldIn(vault)).length, 1);
    world.advance(6 * hour);
    await failRenewal(vault, 'web', 'no');
    assert.equal((await toldIn(vault)).length, 2);
  });

  test('is sent to channels with that event and a matching filter, not to disabled channels', async (t) => {
    const { vault } = await prepared(t, { certificates: ['web*'] });
    await addWebhook(vault, nowhere, { name: 'others', certificates: ['mail*'] });
    await addWebhook(vault, nowhere, { name: 'issued', events: ['certificate.issued'] });
    await addWebhook(vault, nowhere, { name: 'quiet', events: [], digest_at: '07:00' });
    await addWebhook(vault, nowhere, { name: 'all', events: ['renewal.failed', 'certificate.issued'] });
    await addWebhook(vault, nowhere, { name: 'off' });
    await vault.db.write((writer) =>
      writer.updateTable('notification_channels').set({ disabled_at: 1 }).where('name', '=', 'off').execute(),
    );
    await failRenewal(vault, 'web', 'no');
    await renewCertificate(vault, 'web');
    const told = (await deliveriesOf(vault)).map(({ channel, event }) => `${channel} ${event}`);
    assert.deepEqual(told.sort(), [
      ...['all certificate.issued', 'all renewal.failed', 'all renewal.recovered'],
      ...['issued certificate.issued', 'ops renewal.failed', 'ops renewal.recovered'],
    ]);
  });

  test('is sent to channels that have a label of the certificate at that time', async (t) => {
    const { vault } = await testVault(t);
    for (const team of ['web', 'db']) {
      await addWebhook(vault, nowhere, { name: team, certificate_labels: [`team=${team}`] });
      await makeCertificate(vault, `of-${team}`, { labels: [`team=${team}`] });
    }
    await makeCertificate(vault, 'of-none');
    for (const name of ['of-web', 'of-db', 'of-none']) await failRenewal(vault, name, 'no');
    const change = parseInput(updateCertificateInput, { labels: ['team=web'] });
    await changeCertificate(vault, localCli, 'of-none', change);
    await renewCertificate(vault, 'of-none');
    const told = (await deliveriesOf(vault)).map(
      ({ channel, event, about }) => `${channel} ${event} ${about}`,
    );
    assert.deepEqual(told, [
      ...['web renewal.failed of-web', 'db renewal.failed of-db'],
      'web renewal.recovered of-none',
    ]);
  });

  test('is notified again for a new certificate with the name of a deleted one', async (t) => {
    const { vault } = await prepared(t);
    await failRenewal(vault, 'web', 'no');
    await deleteCertificate(vault, localCli, 'web', { force: false });
    await makeCertificate(vault, 'web');
    assert.deepEqual(await toldIn(vault), ['renewal.failed web']);
    await failRenewal(vault, 'web', 'no');
    assert.deepEqual(await toldIn(vault), ['renewal.failed web', 'renewal.failed web']);
  });
});

test('every issued version is sent to channels with that event; an imported version is not', async (t) => {
  const { vault } = await testVault(t);
  await addWebhook(vault, nowhere, { events: ['certificate.issued'] });
  await makeCertificate(vault, 'web');
  await renewCertificate(vault, 'web');
  await importOne(vault, 'elsewhere', { chain: true });
  assert.deepEqual(await toldIn(vault), ['certificate.issued web', 'certificate.issued web']);
  const [, second] = await deliveriesOf(vault);
  const { data } = await vault.db.reader
    .selectFrom('notifications')
    .select('data')
    .where('id', '=', second?.notification_id ?? 0)
    .executeTakeFirstOrThrow();
  assert.partialDeepStrictEqual(JSON.parse(data), {
    ...{ certificate: 'web', domains: ['web.example.test'], issuer: 'local-ca', version: 2 },
  });
});
