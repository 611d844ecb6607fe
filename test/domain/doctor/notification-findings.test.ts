/**
 * Findings about channels: which one fails, why and what to do, and none for channels that an administrator disabled.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour } from '../../../src/base/duration.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { notificationFindings } from '../../../src/domain/doctor/notification-findings.ts';
import { changeChannel } from '../../../src/domain/notifications/notification-channels.ts';
import { status, webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook, deliverAll, failRenewal } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

test('failing channels are reported, working ones counted, and disabled ones skipped', async (t) => {
  const { vault, world } = await testVault(t);
  const receiver = await webhookReceiver(t);
  const { host } = new URL(receiver.url);
  assert.deepEqual(await notificationFindings(vault), []);
  await addWebhook(vault, receiver.url);
  const fine = [{ check: 'notifications', status: 'ok', message: '1 channel works' }];
  assert.deepEqual(await notificationFindings(vault), fine);
  await makeCertificate(vault, 'web');
  await failRenewal(vault, 'web', 'no');
  receiver.answers.push(status(500));
  await deliverAll(vault);
  assert.deepEqual(await notificationFindings(vault), [
    {
      check: 'notification',
      about: 'ops',
      status: 'failed',
      message: `channel ops failed to deliver its last message (1 pending): ${host} responded with 500`,
      hint: 'Try: vault notification test --channel ops',
    },
  ]);
  world.advance(hour);
  await deliverAll(vault);
  assert.deepEqual(await notificationFindings(vault), fine);
  world.advance(6 * hour);
  await failRenewal(vault, 'web', 'no');
  receiver.answers.push(status(410));
  await deliverAll(vault);
  const [gone] = await notificationFindings(vault);
  assert.equal(gone?.status, 'failed');
  assert.equal(
    gone.message,
    `channel ops was disabled: ${host} responded with 410 Gone: the endpoint no longer accepts messages`,
  );
  await changeChannel(vault, localCli, 'ops', { disabled: true });
  assert.deepEqual(await notificationFindings(vault), []);
});
