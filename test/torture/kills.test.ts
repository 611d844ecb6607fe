/** The short form of the chamber of kills. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Finding } from './chamber.ts';
import { kill } from './kills.ts';
import { deedKinds } from './ledger.ts';
import { shortOrder } from './short-order.ts';

/** Asserts that every kind of response occurred and was checked. */
function assertAnswered(findings: readonly Finding[], kills: number): void {
  const of = (name: string) => findings.find((finding) => finding.name === name)?.value ?? 0;
  assert.equal(of('kills'), kills);
  // Otherwise there was no real load.
  assert.ok(of('answers') >= 20, JSON.stringify(findings));
  const missed = deedKinds.filter((kind) => of(`  ${kind}`) === 0);
  assert.deepEqual(missed, [], JSON.stringify(findings));
  assert.ok(of('comparisons') > of('answers'), JSON.stringify(findings));
}

test('after five kills under full load, every response of the vault still holds', async (t) => {
  assertAnswered(await kill(shortOrder(t), { kills: 5, clients: 8 }), 5);
});
