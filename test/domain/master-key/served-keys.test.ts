/** A rotation on a shared database begins when each node that runs has the next key, and not before. */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync } from 'node:fs';
import { test } from 'node:test';
import { minute } from '../../../src/base/duration.ts';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { nextKeyPath } from '../../../src/crypto/secrets/keyring.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { placeNextKey } from '../../../src/domain/master-key/master-key-files.ts';
import { isRotating, rotateMasterKey } from '../../../src/domain/master-key/master-key-rotation.ts';
import { recordNode } from '../../../src/domain/nodes/nodes.ts';
import { openEverything, sealEverything } from '../../harness/database/sealed-everything.ts';
import { ownNode, type SharedNode, sharedNodes } from '../../harness/database/shared-nodes.ts';

const order = { actor: localCli, report: () => undefined };
const record = ({ vault, id }: SharedNode) => recordNode(vault, ownNode(id, { host: `${id}.test` }));

test('a rotation fails with a list of hosts without the next key, and succeeds when all have it', async (t) => {
  const { nodes, during } = await sharedNodes(t, minute, 0, -minute);
  const [first, second, third] = nodes;
  await sealEverything(first.vault);
  for (const node of nodes) await record(node);
  const current = first.vault.keyring.current.name;
  const next = nextKeyPath(first.keyFile);
  const refused = async (hosts: string) =>
    assert.rejects(during(rotateMasterKey(first.vault, order)), (error: OperatorError) => {
      assert(error instanceof OperatorError);
      assert.match(
        error.message,
        new RegExp(`nodes do not have the next master key \\([0-9a-f]{16}\\): ${hosts}$`),
      );
      assert(error.hint?.includes(next), String(error.hint));
      return true;
    });
  await refused('node-1.test, node-2.test, node-3.test');
  assert(existsSync(next), 'the next key is there to be copied');
  await record(first);
  await refused('node-2.test, node-3.test');
  copyFileSync(next, nextKeyPath(third.keyFile));
  await record(third);
  await refused('node-2.test');
  assert.equal(await isRotating(first.vault), false);
  assert.equal(first.vault.keyring.current.name, current);
  copyFileSync(next, nextKeyPath(second.keyFile));
  await record(second);
  const { from, to } = await during(rotateMasterKey(first.vault, order));
  assert.deepEqual(from, [current]);
  for (const { vault } of nodes) {
    const { keys } = await openEverything(vault);
    assert.deepEqual(keys, [to]);
  }
});

test('a rotation waits a few seconds for a node to find the next key', async (t) => {
  const { nodes, during, database } = await sharedNodes(t, 0);
  const [node] = nodes;
  await record(node);
  const rotating = rotateMasterKey(node.vault, order);
  const begun = database.now();
  const recording = (async () => {
    while (database.now() < begun + 5000) await node.vault.world.turn();
    await record(node);
  })();
  await during(Promise.all([rotating, recording]));
  assert.equal((await rotating).to, node.vault.keyring.current.name);
});

test('a node that starts without the next key after the check blocks the rotation', async (t) => {
  const { nodes, during } = await sharedNodes(t, 0, 0);
  const [first, second] = nodes;
  const { vault } = first;
  await sealEverything(vault);
  const current = vault.keyring.current.name;
  const next = placeNextKey(vault.keyring, vault.world, undefined);
  await record(first);
  let writes = 0;
  // The first transaction of a rotation is the one in which it begins.
  const write: SharedNode['vault']['db']['write'] = async (work) => {
    writes += 1;
    if (writes === 1) await record(second);
    return vault.db.write(work);
  };
  const slow = { ...vault, db: Object.create(vault.db, { write: { value: write } }) };
  await assert.rejects(
    during(rotateMasterKey(slow, order)),
    /^OperatorError: 1 of 2 nodes do not have the next master key \([0-9a-f]{16}\): node-2\.test$/,
  );
  assert.equal(writes, 1);
  assert.equal(await isRotating(vault), false);
  assert.deepEqual((await openEverything(second.vault)).keys, [current]);
  copyFileSync(nextKeyPath(first.keyFile), nextKeyPath(second.keyFile));
  await record(second);
  assert.equal((await during(rotateMasterKey(vault, order))).to, next.name);
  assert.deepEqual((await openEverything(second.vault)).keys, [next.name]);
});

test('a dead node does not block a rotation', async (t) => {
  const { nodes, advance } = await sharedNodes(t, 0, 0);
  const [first, dead] = nodes;
  await record(dead);
  advance(minute);
  const { vault } = first;
  const next = placeNextKey(vault.keyring, vault.world, undefined);
  await record(first);
  assert.equal((await rotateMasterKey(vault, order)).to, next.name);
});

test('a forced rotation ignores nodes without the next key', async (t) => {
  const { nodes, during } = await sharedNodes(t, 0, 0);
  const [first, second] = nodes;
  await record(second);
  const { to } = await during(rotateMasterKey(first.vault, { ...order, force: true }));
  assert.equal(first.vault.keyring.current.name, to);
});
