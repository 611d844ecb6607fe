/** The short form of the chamber of nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandNames } from './node-commands.ts';
import { crowdKinds } from './node-crowd.ts';
import { tormentNodes } from './nodes.ts';
import { shortOrder } from './short-order.ts';
import { tormentedServer } from './tormented-database.ts';

test('responses of two nodes still hold after the nodes are killed and paused and their database crashes', async (t) => {
  const findings = await tormentNodes(shortOrder(t), {
    ...{ rounds: 2, skews: [0, 0], clients: 3, maxPause: 2500, calm: 300 },
    ...{ databaseShare: 1, killedCommands: 0, verify: 'last' },
    database: tormentedServer,
  });
  const of = (name: string) => findings.find((finding) => finding.name === name)?.value ?? 0;
  const names = [...crowdKinds, ...commandNames.map((name) => `vault ${name}`)];
  const missed = names.filter((name) => of(`  ${name}`) === 0);
  assert.deepEqual(missed, [], JSON.stringify(findings));
  assert.ok(of('polls that nothing had changed for') > 0, JSON.stringify(findings));
  assert.ok(of('comparisons') > of('answers'), JSON.stringify(findings));
});
