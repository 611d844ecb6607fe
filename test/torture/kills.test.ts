/** The chamber of kill -9 in its short form. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kill } from './kills.ts';
import { shortOrder } from './short-order.ts';

test('killed five times under full load, the vault has kept every answer that it gave', async (t) => {
  const findings = await kill(shortOrder(t), { kills: 5, leases: 'ended', clients: 8 });
  const of = (name: string) => findings.find((finding) => finding.name === name)?.value ?? 0;
  assert.equal(of('kills'), 5);
  // Less would be no load.
  assert.ok(of('answers') >= 20, JSON.stringify(findings));
  assert.ok(of('comparisons') > of('answers'), JSON.stringify(findings));
});
