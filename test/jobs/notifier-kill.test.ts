/**
 * kill -9 between a message that was sent and the note of it: it comes once more, with the same id, and never not at
 * all.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute } from '../../src/base/duration.ts';
import { realWorld } from '../../src/base/world.ts';
import { eventually } from '../harness/eventually.ts';
import { isSignedWith, webhookReceiver } from '../harness/http/webhook-receiver.ts';
import { makeCertificate } from '../harness/issuance/renewal-fixtures.ts';
import { addWebhook, deliveriesOf, failRenewal } from '../harness/notifications/fixtures.ts';
import { testVault } from '../harness/test-vault.ts';
import { TestWorld } from '../harness/test-world.ts';
import { notifierProcess } from './notifier-process.ts';

test('a notifier that is killed while a receiver has the message loses nothing, and repeats it with the same id', async (t) => {
  const receiver = await webhookReceiver(t);
  const { vault, dataDir } = await testVault(t, { world: new TestWorld(realWorld.now()) });
  const secret = await addWebhook(vault, receiver.url);
  await makeCertificate(vault, 'web');
  await failRenewal(vault, 'web', 'no');
  const taken = Promise.withResolvers<void>();
  receiver.answers.push(() => taken.resolve());
  const kill = notifierProcess(t, dataDir, 0);
  await taken.promise;
  await kill();
  assert.partialDeepStrictEqual((await deliveriesOf(vault))[0], { status: 'sending', attempts: 1 });
  notifierProcess(t, dataDir, 2 * minute);
  const delivered = await eventually('it is delivered', async () => {
    const [row] = await deliveriesOf(vault);
    return row?.status === 'delivered' ? row : undefined;
  });
  assert.equal(delivered.attempts, 2);
  assert.equal(receiver.received.length, 2);
  const [first, second] = receiver.received;
  assert(first && second);
  assert.equal(first.headers['webhook-id'], second.headers['webhook-id']);
  assert.equal(first.body, second.body);
  assert(isSignedWith(secret, second, realWorld.now() + 2 * minute));
});
