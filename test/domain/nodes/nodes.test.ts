/**
 * The nodes of a shared database: recorded while they run, forgotten afterwards, and told apart from those that died.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { minute, second } from '../../../src/base/duration.ts';
import { forgetNode, liveNodes, recordedNodes, recordNode } from '../../../src/domain/nodes/nodes.ts';
import { ownNode, type SharedNode, sharedNodes } from '../../harness/database/shared-nodes.ts';
import { ofFiles } from '../../harness/database/tested-engine.ts';
import { testVault } from '../../harness/test-vault.ts';

const record = ({ vault, id }: SharedNode, others: Parameters<typeof ownNode>[1] = {}) =>
  recordNode(vault, ownNode(id, others));
const live = async ({ vault }: SharedNode) => (await liveNodes(vault.db.reader)).map(({ id }) => id);
const recorded = async ({ vault }: SharedNode) => (await recordedNodes(vault.db.reader)).map(({ id }) => id);

test('a node is recorded with database time, its clock offset and its master keys', async (t) => {
  const { nodes, database, advance } = await sharedNodes(t, -minute, minute);
  const [behind, ahead] = nodes;
  const startedAt = database.now();
  await record(behind);
  await record(ahead, { host: 'b.example', version: '0.2.0', public_url: 'https://vault.example' });
  advance(5 * second);
  await record(ahead, { host: 'b.example', version: '0.2.0', public_url: 'https://vault.example' });
  const masterKeys = [behind.vault.keyring.current.name];
  const [one, other] = await recordedNodes(behind.vault.db.reader);
  assert.deepEqual(one, {
    id: 'node-2',
    host: 'b.example',
    version: '0.2.0',
    startedAt,
    seenAt: startedAt + 5 * second,
    clockAhead: minute,
    masterKeys,
    settings: ownNode('node-2', { public_url: 'https://vault.example' }).settings,
  });
  assert.partialDeepStrictEqual(other, { id: 'node-1', seenAt: startedAt, clockAhead: -minute, masterKeys });
});

test('a node is live if seen within a minute of the others, and removed after ten minutes', async (t) => {
  const { nodes, advance } = await sharedNodes(t, minute, -minute);
  const [first, second] = nodes;
  await record(first);
  await record(second);
  advance(minute - 1);
  await record(second);
  assert.deepEqual(await live(first), ['node-1', 'node-2']);
  advance(1);
  await record(second);
  assert.deepEqual(await live(first), ['node-2']);
  assert.deepEqual(await recorded(first), ['node-1', 'node-2']);
  advance(9 * minute);
  await record(second);
  assert.deepEqual(await recorded(first), ['node-1', 'node-2']);
  advance(1);
  await record(second);
  assert.deepEqual(await recorded(first), ['node-2']);
});

test('nodes that all stopped at the same time are still listed as live', async (t) => {
  const { nodes, advance } = await sharedNodes(t, 0, 0);
  const [first, second] = nodes;
  await record(first);
  await record(second);
  advance(60 * minute);
  assert.deepEqual(await live(first), ['node-1', 'node-2']);
});

test('a stopped node is removed immediately, and other nodes stay', async (t) => {
  const { nodes } = await sharedNodes(t, 0, 0);
  const [first, second] = nodes;
  await record(first);
  await record(second);
  await forgetNode(first.vault, first.id);
  await forgetNode(first.vault, first.id);
  assert.deepEqual(await recorded(first), ['node-2']);
});

test('an embedded database has no nodes', ofFiles('servers have nodes'), async (t) => {
  const { vault } = await testVault(t);
  assert.equal(vault.sharedClock, undefined);
  assert.deepEqual(await recordedNodes(vault.db.reader), []);
  assert.deepEqual(await liveNodes(vault.db.reader), []);
});

test('a node whose key file is gone is recorded with the keys that it has read', async (t) => {
  const { nodes } = await sharedNodes(t, 0);
  const [node] = nodes;
  rmSync(node.keyFile);
  await record(node);
  const [{ masterKeys } = { masterKeys: [] }] = await recordedNodes(node.vault.db.reader);
  assert.deepEqual(masterKeys, [node.vault.keyring.current.name]);
});

test('a node record with invalid settings and keys is read with its host only', async (t) => {
  const { nodes } = await sharedNodes(t, 0);
  const [node] = nodes;
  await record(node);
  for (const text of ['{"instance":7}', '{', '[1]']) {
    await node.vault.db.write((writer) =>
      writer.updateTable('nodes').set({ settings: text, master_keys: text }).execute(),
    );
    const [found] = await recordedNodes(node.vault.db.reader);
    assert.partialDeepStrictEqual(found, { host: 'node-1', masterKeys: [], settings: undefined }, text);
  }
});
