/** The notifier: beside everything else, several receivers at once, and whatever dies in between, nothing is lost. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, type TestContext, test } from 'node:test';
import { minute, second } from '../../src/base/duration.ts';
import { runNotifier } from '../../src/jobs/notifier.ts';
import { eventually } from '../harness/eventually.ts';
import { renewCertificate } from '../harness/http/fixtures.ts';
import { type WebhookReceiver, webhookReceiver } from '../harness/http/webhook-receiver.ts';
import { makeCertificate } from '../harness/issuance/renewal-fixtures.ts';
import { addWebhook, deliveriesOf, failRenewal } from '../harness/notifications/fixtures.ts';
import { testVault } from '../harness/test-vault.ts';

async function prepared(t: TestContext, certificates = 1) {
  const receiver = await webhookReceiver(t);
  const opened = await testVault(t);
  await addWebhook(opened.vault, receiver.url);
  for (let count = 0; count < certificates; count += 1) {
    await makeCertificate(opened.vault, `web${count}`);
    await failRenewal(opened.vault, `web${count}`, 'no');
  }
  return { ...opened, receiver };
}

function started(t: TestContext, vault: Parameters<typeof runNotifier>[0]) {
  const stop = new AbortController();
  const job = runNotifier(vault, stop.signal);
  const end = async () => {
    stop.abort();
    await job;
  };
  t.after(end);
  return end;
}

/** Ticks the clock a second at a time until the condition holds. */
async function ticking(world: { advance: (ms: number) => void }, holds: () => Promise<boolean>) {
  await eventually('what the notifier does', async () => {
    if (await holds()) return true;
    world.advance(second);
    return undefined;
  });
}

const held = (receiver: WebhookReceiver) => {
  const responses: ServerResponse[] = [];
  receiver.answers.push(
    ...Array.from({ length: 100 }, () => (response: ServerResponse) => void responses.push(response)),
  );
  return {
    responses,
    letGo: () => {
      receiver.answers.length = 0;
      for (const response of responses) response.writeHead(204).end();
    },
  };
};

const allDelivered = (vault: Parameters<typeof deliveriesOf>[0]) => async () =>
  (await deliveriesOf(vault)).every(({ status }) => status === 'delivered');

suite('the notifier', () => {
  test('delivers queued messages and messages that are queued later', async (t) => {
    const { vault, world, receiver } = await prepared(t, 3);
    started(t, vault);
    await ticking(world, allDelivered(vault));
    assert.equal(receiver.received.length, 3);
    await renewCertificate(vault, 'web1');
    await ticking(world, async () => receiver.received.length === 4);
    assert.equal(receiver.received[3]?.json.type, 'renewal.recovered');
  });

  test('sends 12 messages without a pause between them', async (t) => {
    const { vault, receiver } = await prepared(t, 12);
    started(t, vault);
    await eventually('all are delivered', async () => (await allDelivered(vault)()) || undefined);
    assert.equal(receiver.received.length, 12);
  });

  test('does not delay other channels or renewals for a slow receiver', async (t) => {
    const { vault, world, receiver } = await prepared(t, 5);
    const other = await webhookReceiver(t);
    await addWebhook(vault, other.url, { name: 'other' });
    const slow = held(receiver);
    started(t, vault);
    await eventually('two are asked', async () => slow.responses.length === 2 || undefined);
    await makeCertificate(vault, 'more');
    await failRenewal(vault, 'more', 'no');
    world.advance(second);
    await eventually('the other one hears it', async () => other.received.length === 1 || undefined);
    assert.equal(slow.responses.length, 2, 'no more than two at a time');
    await renewCertificate(vault, 'more');
    slow.letGo();
    await ticking(world, allDelivered(vault));
    assert.equal(receiver.received.length, 7);
  });

  test('stops waiting for an unresponsive receiver after 30 s and retries later', async (t) => {
    const { vault, world, receiver } = await prepared(t);
    const slow = held(receiver);
    started(t, vault);
    await eventually('it is asked', async () => slow.responses.length === 1 || undefined);
    world.advance(31 * second);
    await eventually('it is put down', async () => {
      const [row] = await deliveriesOf(vault);
      return (row?.status === 'queued' && row.error !== null) || undefined;
    });
    assert.match((await deliveriesOf(vault))[0]?.error ?? '', /within 30 s$/);
    slow.letGo();
    world.advance(minute);
    await ticking(world, allDelivered(vault));
  });

  test('returns a delivery in progress to the queue when stopped, and the next notifier delivers it', async (t) => {
    const { vault, world, receiver } = await prepared(t);
    const slow = held(receiver);
    const end = started(t, vault);
    await eventually('it is asked', async () => slow.responses.length === 1 || undefined);
    await end();
    assert.partialDeepStrictEqual((await deliveriesOf(vault))[0], { status: 'queued', attempts: 0 });
    slow.letGo();
    started(t, vault);
    await ticking(world, allDelivered(vault));
    assert.equal(new Set(receiver.received.map(({ json }) => json.id)).size, 1);
  });

  test('delivers each message once with four notifiers', async (t) => {
    const { vault, world, receiver } = await prepared(t, 10);
    for (let count = 0; count < 4; count += 1) started(t, vault);
    await ticking(world, allDelivered(vault));
    assert.equal(receiver.received.length, 10);
  });

  test('continues after a database error', async (t) => {
    const { vault, world, receiver, log } = await prepared(t);
    let troubles = 2;
    const db = new Proxy(vault.db, {
      get: (target, name) => {
        if (name === 'write' && troubles-- > 0) return () => Promise.reject(new Error('the disk is full'));
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    started(t, { ...vault, db });
    await ticking(world, async () => receiver.received.length === 1);
    assert(
      log.lines.some(
        (line) => line.includes('failed to read the notification queue') && line.includes('disk is full'),
      ),
    );
  });
});
