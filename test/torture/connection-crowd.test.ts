/** The short form of the connection crowd. Does not check response times, which depend on the machine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crowdFor, memoryBound, refusalsBound } from './connection-crowd.ts';
import { shortOrder } from './short-order.ts';

for (const scheme of ['http', 'https'] as const) {
  test(`despite hostile connections over ${scheme}, a good client gets responses and memory is bounded`, async (t) => {
    const facts = await crowdFor(shortOrder(t), { scheme, connections: 600, ms: 4000 });
    t.diagnostic(JSON.stringify(facts));
    assert.ok(facts.asked > 0);
    assert.equal(facts.unanswered, 0);
    if (facts.kills !== 0) assert.equal(typeof facts.kills, 'string', 'the kernel killed it for its memory');
    assert.ok(facts.memory > 50 && facts.memory < memoryBound, `${facts.memory} MB`);
    assert.ok(facts.refusals > 0 && facts.refusals <= refusalsBound, `${facts.refusals} audit events`);
    assert.ok(facts.opened >= 600, `${facts.opened} connections`);
  });
}
