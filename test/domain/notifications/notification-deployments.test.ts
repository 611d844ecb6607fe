/**
 * Notices of deployments: one per check and channel for all that became failing, outdated or silent, one for all that
 * are current again, and none for what was notified before.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { deleteApiKey, revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { deploymentReport } from '../../../src/domain/deployments/deployment-inputs.ts';
import { deleteDeployment } from '../../../src/domain/deployments/deployment-removal.ts';
import { reportDeployment } from '../../../src/domain/deployments/deployment-reports.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { changesPerCheck } from '../../../src/domain/notifications/notification-changes.ts';
import { addChannel } from '../../../src/domain/notifications/notification-channels.ts';
import type {
  DeploymentChange,
  DeploymentChanges,
} from '../../../src/domain/notifications/notification-deployment-text.ts';
import { notifyDeployments, patience } from '../../../src/domain/notifications/notification-deployments.ts';
import { createChannelInput } from '../../../src/domain/notifications/notification-inputs.ts';
import { messageText } from '../../../src/domain/notifications/notification-text.ts';
import { makeKey } from '../../harness/http/fixtures.ts';
import { giveVersion, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook, toldIn, written } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const nowhere = 'http://127.0.0.1:1/';
const failed = { reload: { result: 'failed', output: 'no such unit' } };

/** A vault with a certificate whose clients report, and a webhook for the usual events unless it is `none`. */
async function prepared(t: TestContext, channel: 'none' | Record<string, unknown> = {}) {
  const opened = await testVault(t);
  const { vault, world } = opened;
  if (channel !== 'none') await addWebhook(vault, nowhere, channel);
  await makeCertificate(vault, 'web', { labels: ['team=web'] });
  const key = await makeKey(vault);
  const report = (host: string, changes: object = {}, certificate = 'web') => {
    const body = { host, job: 'web-1', destination: '/tls', version: 1, ...changes };
    const target = { certificate, name: `web-1.${host}` };
    return reportDeployment(vault, localCli, key.id, target, parseInput(deploymentReport, body));
  };
  const cursor = { after: 0 };
  // As if the vault had run for long.
  const check = (since = 0, most = 15_000) => notifyDeployments(vault, { cursor, since, most });
  /** What receivers get: the data and the text of all notices, oldest first. */
  const notices = async () => {
    const rows = await vault.db.reader
      .selectFrom('notifications')
      .select(['event', 'data', 'at', 'about'])
      .orderBy('id')
      .execute();
    return rows.map(({ event, data, at, about }) => {
      const changes = JSON.parse(data) as DeploymentChanges;
      return { event, about, ...changes, ...messageText(event, JSON.parse(data), at) };
    });
  };
  const stored = async () =>
    (await vault.db.reader.selectFrom('deployments').select('notified_state').orderBy('id').execute()).map(
      (row) => row.notified_state,
    );
  return { ...opened, world, key, report, check, cursor, notices, stored, told: () => toldIn(vault) };
}

const hostsIn = (changes: readonly DeploymentChange[]) => changes.map(({ host }) => host);

suite('a change of a deployment', () => {
  test('is notified once, however often the client repeats its report, and so is the recovery', async (t) => {
    const { vault, world, report, check, notices, told } = await prepared(t);
    await report('www1');
    assert.equal(await check(), 0);
    await report('www1', failed);
    assert.equal(await check(), 1);
    for (let again = 0; again < 3; again += 1) {
      world.advance(minute);
      await report('www1', failed);
      await vault.keyUse.write();
      assert.equal(await check(), 0);
    }
    // Another reason is not another state.
    await report('www1', { reload: { result: 'failed', output: 'other' } });
    assert.equal(await check(), 0);
    await report('www1');
    assert.equal(await check(), 1);
    assert.equal(await check(), 0);
    const about = 'web on www1 (web-1.www1)';
    assert.deepEqual(await told(), [`deployment.unhealthy ${about}`, `deployment.recovered ${about}`]);
    const [alarm, recovery] = await notices();
    assert.deepEqual(alarm?.counts, { failing: 1 });
    assert.deepEqual(alarm.deployments, [
      {
        ...{ certificate: 'web', id: 'web-1.www1', host: 'www1', job: 'web-1' },
        ...{ state: 'failing', previous_state: 'current', version: 1, current_version: 1 },
        ...{ reason: 'reload failed: no such unit', last_seen_at: '2026-11-21T12:00:00Z' },
      },
    ]);
    assert.match(alarm.subject, /web on www1: failing, reload failed: no such unit$/);
    assert.match(alarm.text, /^ {2}vault fleet status --state failing$/m);
    assert.deepEqual(recovery?.counts, { current: 1 });
    assert.equal(recovery.deployments[0]?.previous_state, 'failing');
    assert.match(recovery.subject, /web on www1: current again$/);
    assert.match(recovery.text, /^ +Was: +failing$/m);
  });

  test('is notified for each state it goes through, with what it was before', async (t) => {
    const { vault, world, report, check, notices } = await prepared(t);
    await report('www1');
    await giveVersion(vault, 'web');
    world.advance(day + hour);
    assert.equal(await check(), 1);
    await report('www1', failed);
    assert.equal(await check(), 1);
    world.advance(2 * day + hour);
    assert.equal(await check(), 1);
    world.advance(day);
    assert.equal(await check(), 0, 'nothing reminds');
    await report('www1', { version: 2 });
    assert.equal(await check(), 1);
    assert.deepEqual(
      (await notices()).flatMap(({ event, deployments }) =>
        deployments.map((one) => [event, one.previous_state, one.state, one.reason]),
      ),
      [
        ['deployment.unhealthy', 'current', 'outdated', null],
        ['deployment.unhealthy', 'outdated', 'failing', 'reload failed: no such unit'],
        ['deployment.unhealthy', 'failing', 'silent', null],
        ['deployment.recovered', 'silent', 'current', null],
      ],
    );
  });

  test('is notified with all others of a check in one message, and all recoveries in another', async (t) => {
    const { vault, world, report, check, notices, told } = await prepared(t);
    for (const host of ['gone1', 'gone2']) await report(host);
    world.advance(day);
    for (const host of ['old', 'broken', 'well', 'good']) await report(host, host === 'good' ? failed : {});
    assert.equal(await check(), 1);
    await giveVersion(vault, 'web');
    world.advance(day + hour);
    await report('broken', { version: 2, verify: { result: 'failed', output: 'expired' } });
    await report('well', { version: 2 });
    await report('good', { version: 2 });
    assert.equal(await check(), 5);
    assert.deepEqual(await told(), [
      'deployment.unhealthy web on good (web-1.good)',
      'deployment.unhealthy 4 deployments',
      'deployment.recovered web on good (web-1.good)',
    ]);
    const [, unwell] = await notices();
    assert.deepEqual(unwell?.counts, { silent: 2, outdated: 1, failing: 1 });
    assert.match(unwell.subject, /4 deployments need attention: 1 failing, 1 outdated, 2 silent$/);
    assert.match(unwell.text, /^ {2}web on broken \(web-1\): verification failed: expired$/m);
    assert.match(unwell.text, /^ {2}web on old \(web-1\): version 1 of 2$/m);
    assert.match(unwell.text, /^ {2}web on gone1 \(web-1\): last seen 2026-11-21T12:00:00Z$/m);
    for (const host of ['gone1', 'gone2', 'old', 'broken']) await report(host, { version: 2 });
    assert.equal(await check(), 4);
    const { subject, text } = (await notices()).at(-1) ?? assert.fail();
    assert.match(subject, /4 deployments are current again$/);
    assert.match(text, /^ {2}web on gone2 \(web-1\): was silent$/m);
  });

  test('is not notified if the client recovered before the check', async (t) => {
    const { report, check, told } = await prepared(t);
    await report('www1', failed);
    await report('www1');
    assert.equal(await check(), 0);
    assert.deepEqual(await told(), []);
  });

  test('is notified once by two nodes that find it at the same time', async (t) => {
    const { vault, report, told, check } = await prepared(t);
    const nodes = () =>
      Promise.all(
        [1, 2].map(() => notifyDeployments(vault, { cursor: { after: 0 }, since: 0, most: 15_000 })),
      );
    for (const host of ['www1', 'www2']) await report(host, failed);
    assert.deepEqual((await nodes()).toSorted(), [0, 2]);
    assert.deepEqual(await told(), ['deployment.unhealthy 2 deployments']);
    for (const host of ['www1', 'www2']) await report(host);
    assert.deepEqual((await nodes()).toSorted(), [0, 2]);
    assert.deepEqual((await told()).slice(1), ['deployment.recovered 2 deployments']);
    assert.equal(await check(), 0);
  });

  test('is notified no more once the deployment is deleted, and as new when it reports again', async (t) => {
    const { vault, report, check, told, stored } = await prepared(t);
    const target = { certificate: 'web', name: 'web-1.www1' };
    await report('www1', failed);
    assert.equal(await check(), 1);
    await deleteDeployment(vault, localCli, target);
    assert.equal(await check(), 0);
    assert.deepEqual(await stored(), []);
    await report('www1');
    assert.equal(await check(), 0);
    await report('www1', failed);
    await deleteDeployment(vault, localCli, target);
    assert.equal(await check(), 0, 'deleted before the check');
    assert.equal((await told()).length, 1);
    await report('www1', failed);
    assert.equal(await check(), 1);
  });

  test('is notified no more once the API key that reports it is deleted', async (t) => {
    const { vault, key, report, check, told } = await prepared(t);
    await report('www1', failed);
    assert.equal(await check(), 1);
    await revokeApiKey(vault, localCli, key.id);
    await deleteApiKey(vault, localCli, key.id);
    assert.equal(await check(), 0);
    assert.equal((await told()).length, 1);
  });

  test('lists at most 100 deployments and counts all, and the next check has what is too much', async (t) => {
    const { vault, report, check, notices, stored, cursor } = await prepared(t);
    await report('first', failed);
    const { id, ...row } = await vault.db.reader
      .selectFrom('deployments')
      .selectAll()
      .executeTakeFirstOrThrow();
    const copies = Array.from({ length: changesPerCheck + 20 }, (_, n) => ({ ...row, name: `n${n}` }));
    await vault.db.write(async (writer) => {
      for (let from = 0; from < copies.length; from += 130)
        await writer
          .insertInto('deployments')
          .values(copies.slice(from, from + 130))
          .execute();
    });
    assert.equal(await check(), changesPerCheck);
    assert.equal(await check(), 21);
    assert.deepEqual([await check(), cursor], [0, { after: 0 }]);
    assert.ok((await stored()).every((state) => state === 'failing'));
    const [first, second, ...others] = await notices();
    assert.deepEqual(others, []);
    assert.deepEqual([first?.counts, first?.deployments.length], [{ failing: changesPerCheck }, 100]);
    assert.match(first?.text ?? '', /^ {2}and 400 more$/m);
    assert.deepEqual(second?.counts, { failing: 21 });
  });

  test('is found in parts, which begin with the first one again, and after an error the same part', async (t) => {
    const { vault, report, check, cursor, told } = await prepared(t);
    await report('first');
    const { id, ...row } = await vault.db.reader
      .selectFrom('deployments')
      .selectAll()
      .executeTakeFirstOrThrow();
    const copies = Array.from({ length: 600 }, (_, n) => ({ ...row, name: `n${n}` }));
    await vault.db.write(async (writer) => {
      for (let from = 0; from < copies.length; from += 100)
        await writer
          .insertInto('deployments')
          .values(copies.slice(from, from + 100))
          .execute();
    });
    await report('last', failed);
    assert.equal(await check(0, 500), 0);
    const { after } = cursor;
    assert.notEqual(after, 0);
    const failure = t.mock.method(vault.db, 'write', () => Promise.reject(new Error('no')));
    await assert.rejects(check(0, 500), /^Error: no$/);
    failure.mock.restore();
    assert.equal(cursor.after, after);
    assert.equal(await check(0, 500), 1);
    assert.equal(cursor.after, 0);
    assert.deepEqual(await told(), ['deployment.unhealthy web on last (web-1.last)']);
  });
});

suite('a vault that was off', () => {
  test('calls a deployment silent an hour after its start at the earliest, but a failing one failing', async (t) => {
    const { world, report, check, notices } = await prepared(t);
    await report('gone');
    world.advance(10 * day);
    const since = world.now();
    await report('broken', failed);
    assert.equal(await check(since), 1);
    world.advance(patience - 1);
    assert.equal(await check(since), 0);
    world.advance(1);
    assert.equal(await check(since), 1);
    assert.deepEqual(
      (await notices()).map(({ deployments }) => hostsIn(deployments)),
      [['broken'], ['gone']],
    );
  });

  test('does not call a silent deployment recovered while it waits', async (t) => {
    const { world, report, check, stored } = await prepared(t);
    await report('gone');
    world.advance(10 * day);
    assert.equal(await check(), 1);
    assert.equal(await check(world.now()), 0);
    assert.deepEqual(await stored(), ['silent']);
  });
});

suite('a channel', () => {
  test('learns of all that need attention if it is the first for this event, before which nothing is stored', async (t) => {
    const { vault, report, check, stored, told } = await prepared(t, 'none');
    await report('www1', failed);
    assert.equal(await check(), 0);
    await addWebhook(vault, nowhere, { name: 'other', events: ['renewal.failed'] });
    assert.equal(await check(), 0);
    assert.deepEqual(await stored(), [null]);
    await addWebhook(vault, nowhere, { name: 'ops' });
    assert.equal(await check(), 1);
    assert.deepEqual(await stored(), ['failing']);
    assert.deepEqual(await told(), ['deployment.unhealthy web on www1 (web-1.www1)']);
  });

  test('gets only deployments of certificates that fit its patterns and labels', async (t) => {
    const { vault, report, check, notices } = await prepared(t, 'none');
    await makeCertificate(vault, 'mail', { labels: ['team=mail'] });
    await makeCertificate(vault, 'shop', { labels: ['team=web'] });
    const channels: [name: string, filter: object][] = [
      ['all', {}],
      ['pattern', { certificates: ['ma*', 'none'] }],
      ['label', { certificate_labels: ['team=web'] }],
      ['both', { certificates: ['shop'], certificate_labels: ['team=web'] }],
      ['neither', { certificates: ['mail'], certificate_labels: ['team=web'] }],
    ];
    for (const [name, filter] of channels) await addWebhook(vault, nowhere, { name, ...filter });
    for (const certificate of ['web', 'mail', 'shop']) await report('www1', failed, certificate);
    assert.equal(await check(), 3);
    const deliveries = await vault.db.reader
      .selectFrom('notification_deliveries as delivery')
      .innerJoin('notification_channels as channel', 'channel.id', 'delivery.channel_id')
      .select('channel.name')
      .orderBy('delivery.notification_id')
      .execute();
    const given = (await notices()).map(({ deployments }, at) => [
      deliveries[at]?.name,
      deployments.map(({ certificate }) => certificate),
    ]);
    assert.deepEqual(given.toSorted(), [
      ['all', ['web', 'mail', 'shop']],
      ['both', ['shop']],
      ['label', ['web', 'shop']],
      ['pattern', ['mail']],
    ]);
  });

  for (const [type, settings] of [
    ['pagerduty', { routing_key: 'k'.repeat(32) }],
    ['opsgenie', { api_key: 'k' }],
  ] as const) {
    test(`${type} gets one notice for each deployment, of the alarm and of the recovery`, async (t) => {
      const { vault, report, check, told } = await prepared(t, 'none');
      const input = parseInput(createChannelInput, { name: 'oncall', type });
      await addChannel(vault, localCli, input, written(settings));
      for (const host of ['www1', 'www2']) await report(host, failed);
      assert.equal(await check(), 2);
      for (const host of ['www1', 'www2']) await report(host);
      assert.equal(await check(), 2);
      assert.deepEqual(await told(), [
        'deployment.unhealthy web on www1 (web-1.www1)',
        'deployment.unhealthy web on www2 (web-1.www2)',
        'deployment.recovered web on www1 (web-1.www1)',
        'deployment.recovered web on www2 (web-1.www2)',
      ]);
    });
  }
});
