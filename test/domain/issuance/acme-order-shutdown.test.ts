/** A vault that is stopped at every step of an order: the renewal is queued again at once, as it stands. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { anotherOrder, runWatched, undisturbed } from '../../harness/engine-orders.ts';
import { challengeRows, engine, workOn } from '../../harness/engine-vault.ts';
import { type Moment, workerOn } from '../../harness/engine-worker.ts';

async function walkShutdowns(t: TestContext, moment: Moment) {
  const opened = await engine(t, { certificate: null, zones: ['example.test'] });
  const { vault, world, zone } = opened;
  const operations = await undisturbed(opened);
  // The first is the claim: who was stopped before it claims nothing.
  for (const [index, what] of operations.slice(0, -1).entries()) {
    const where = `${moment} operation ${index + 1}, ${what}`;
    const { renewals, orders, issued, accounts } = await anotherOrder(opened, `www${index}`);
    const stop = new AbortController();
    let putUp = new Set<string>();
    const before = world.now();
    const watch = () => (at: { number: number; moment: Moment }) => {
      if (at.number !== index + 1 || at.moment !== moment) return;
      putUp = new Set(zone.records.keys());
      stop.abort();
    };
    await runWatched(opened, watch, stop.signal);
    const [left] = await renewals();
    assert(left, where);
    if (left.status === 'succeeded') {
      assert(index > operations.indexOf('POST /order/N/finalize'), where);
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
      orders().length === 1 || (isLost && /new-order/.test(what)),
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
