/** What an examination says of channels: which takes nothing, why, and what to do; and nothing of those that somebody silenced. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour } from '../../../src/base/duration.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { notificationFindings } from '../../../src/domain/doctor/notification-findings.ts';
import { changeChannel } from '../../../src/domain/notifications/notification-channels.ts';
import { addWebhook, deliverAll, failRenewal } from '../../harness/notification-fixtures.ts';
import { makeCertificate } from '../../harness/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';
import { status, webhookReceiver } from '../../harness/webhook-receiver.ts';

test('channels that take nothing are found, those that are well are counted, and those that were silenced passed over', async (t) => {
  const { vault, world } = await testVault(t);
  const receiver = await webhookReceiver(t);
  const { host } = new URL(receiver.url);
  assert.deepEqual(await notificationFindings(vault), []);
  await addWebhook(vault, receiver.url);
  const well = [{ check: 'notifications', status: 'ok', message: '1 channel takes what is told' }];
  assert.deepEqual(await notificationFindings(vault), well);
  await makeCertificate(vault, 'web');
  await failRenewal(vault, 'web', 'no');
  receiver.answers.push(status(500));
  await deliverAll(vault);
  assert.deepEqual(await notificationFindings(vault), [
    {
      check: 'notification',
      about: 'ops',
      status: 'failed',
      message: `the channel ops did not take its last message, and 1 waits: ${host} responded with 500`,
      hint: 'Try it: vault notification test --channel ops',
    },
  ]);
  world.advance(hour);
  await deliverAll(vault);
  assert.deepEqual(await notificationFindings(vault), well);
  world.advance(6 * hour);
  await failRenewal(vault, 'web', 'no');
  receiver.answers.push(status(410));
  await deliverAll(vault);
  const [gone] = await notificationFindings(vault);
  assert.equal(gone?.status, 'failed');
  assert.equal(
    gone.message,
    `the channel ops was disabled: ${host} responded with 410 Gone: the endpoint no longer accepts messages`,
  );
  await changeChannel(vault, localCli, 'ops', { disabled: true });
  assert.deepEqual(await notificationFindings(vault), []);
});
