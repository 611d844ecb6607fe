/** The short form of the chamber of open orders. Does not check how long orders take, which depends on the machine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holdOrders } from './open-orders.ts';
import { shortOrder } from './short-order.ts';

test('despite a client with as many open orders as it may have, another one gets its certificates', async (t) => {
  const facts = await holdOrders(shortOrder(t), { clients: 1, copied: 850 });
  t.diagnostic(JSON.stringify(facts));
  assert.equal(facts.held, 1000);
  assert.ok(facts.failed > 0 && facts.refused > 200, JSON.stringify(facts));
  assert.ok(facts.slow >= 100, `${facts.slow} connections`);
  assert.ok(facts.honest > 0);
});
