/** A vault that is stopped at every step of an order: the renewal is queued again at once, as it stands. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { challengeRows, engine, workOn } from '../../harness/issuance/engine-vault.ts';
import { type Moment, type Watcher, type Worker, workerOn } from '../../harness/issuance/engine-worker.ts';
import { anotherOrder, nonceRequest, runWatched, stepsOf } from './engine-orders.ts';

async function walkShutdowns(t: TestContext, moment: Moment) {
  const opened = await engine(t, { certificate: null, zones: ['example.test'] });
  const { vault, world, zone } = opened;
  // After the last one there is nothing to return.
  for (const [index, step] of (await stepsOf(opened)).slice(0, -1).entries()) {
    const where = `${moment} ${step.where}`;
    const { name, renewals, orders, issued, accounts } = await anotherOrder(opened, `www${index}`);
    const stop = new AbortController();
    let putUp = new Set<string>();
    const before = world.now();
    let begun: readonly string[] = [];
    const watch =
      ({ operations }: Worker): Watcher =>
      (at) => {
        if (!step.isAt(at, name) || at.moment !== moment) return;
        begun = [...operations];
        putUp = new Set(zone.records.keys());
        stop.abort();
      };
    await runWatched(opened, watch, stop.signal);
    if (!stop.signal.aborted) {
      assert.equal(step.what, nonceRequest, where);
      continue;
    }
    const [left] = await renewals();
    assert(left, where);
    if (left.status === 'succeeded') {
      assert(begun.includes('POST /order/N/finalize'), where);
    } else {
      assert.deepEqual(
        [left.status, left.claims, left.lease_owner, left.error],
        ['queued', 0, null, null],
        where,
      );
      assert(world.now() - before < 20_000, `${where}: ${world.now() - before} ms`);
      // The CA may be looking at them.
      if (orders()[0]?.authorizations.some(({ status }) => status === 'pending')) {
        for (const name of putUp) assert(zone.records.has(name), `${where}: ${name} was taken down`);
      }
      const next = await workerOn(vault, zone);
      const ended = await workOn(next.vault);
      assert.equal(ended.status, 'succeeded', `${where}: ${ended.error}`);
      if (left.order_url !== null) assert.equal(issued()[0]?.url, left.order_url, where);
    }
    const [row, ...others] = await renewals();
    assert.deepEqual([row?.status, others.length], ['succeeded', 0], where);
    assert.equal(issued().length, 1, where);
    const isLost = left.order_url === null && orders().length === 2;
    assert(
      orders().length === 1 || (isLost && /new-order/.test(step.what)),
      `${where}: ${orders().length} orders`,
    );
    assert.equal(accounts().length, 1, where);
    assert.deepEqual(await challengeRows(vault), [], where);
    assert.deepEqual([...zone.records], [], where);
  }
}

test('a vault that is stopped before any operation of an order returns the order to the queue unchanged', (t) =>
  walkShutdowns(t, 'before'));

test('a vault that is stopped after any operation of an order returns the order to the queue unchanged', (t) =>
  walkShutdowns(t, 'after'));
