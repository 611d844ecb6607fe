/**
 * Workers that die as by kill -9 at every step of an order: the next one goes on with the same order and the same key.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { removeLeftoverChallenges } from '../../../src/domain/orders/challenge-removal.ts';
import { leaseDuration } from '../../../src/domain/renewals/renewal-claim.ts';
import { openFor, renewalKeyOwner } from '../../../src/domain/sealed-secrets.ts';
import { requireVersion, versionPrivateKey } from '../../../src/domain/versions/versions.ts';
import { challengeRows, engine, workOn } from '../../harness/issuance/engine-vault.ts';
import { type Moment, workerOn } from '../../harness/issuance/engine-worker.ts';
import { rowOf } from '../../harness/issuance/renewal-fixtures.ts';
import { anotherOrder, nonceRequest, runWatched, stepsOf } from './engine-orders.ts';

async function walkDeaths(t: TestContext, moment: Moment) {
  const opened = await engine(t, { certificate: null, zones: ['example.test'] });
  const { vault, world, zone } = opened;
  for (const [index, step] of (await stepsOf(opened)).entries()) {
    const where = `${moment} ${step.where}`;
    const { name, renewals, orders, issued, accounts } = await anotherOrder(opened, `www${index}`);
    let diedAt: number | undefined;
    const dead = await runWatched(opened, ({ die }) => (at) => {
      if (!step.isAt(at, name) || at.moment !== moment) return;
      diedAt = at.number;
      die();
    });
    if (diedAt === undefined) {
      assert.equal(step.what, nonceRequest, where);
      continue;
    }
    const [left] = await renewals();
    assert(left, where);
    const key = left.sealed_private_key && openFor(vault, renewalKeyOwner(left.id), left.sealed_private_key);
    world.advance(leaseDuration);
    const next = await workerOn(vault, zone);
    if (left.status !== 'succeeded') await workOn(next.vault);
    await removeLeftoverChallenges(next.vault);

    const [ended, ...others] = await renewals();
    assert.equal(ended?.status, 'succeeded', `${where}: ${ended?.error}`);
    assert.equal(others.length, 0, where);
    const [order, ...second] = issued();
    assert(order?.leaf, where);
    assert.equal(second.length, 0, where);
    if (left.order_url !== null) assert.equal(order.url, left.order_url, where);
    // Only what was answered, but could not be put down, is ordered again.
    const isLost = dead.operations.slice(0, diedAt).slice(-2).includes('POST /new-order');
    assert.equal(orders().length <= (left.order_url === null && isLost ? 2 : 1), true, where);
    assert.equal(accounts().length, 1, where);
    const version = await requireVersion(vault.db.reader, await rowOf(vault, name), undefined);
    assert.equal(version.version, 1, where);
    const leaf = new X509Certificate(version.certificate_pem);
    assert(leaf.raw.equals(order.leaf), where);
    const stored = publicKeyOf(versionPrivateKey(vault, version));
    assert.deepEqual(leaf.publicKey.export({ type: 'spki', format: 'der' }), stored, where);
    if (key !== null) assert.deepEqual(publicKeyOf(key), stored, where);
    assert.deepEqual(await challengeRows(vault), [], where);
    assert.deepEqual([...zone.records], [], where);
  }
}

test('a worker that dies before any operation of an order leaves it to the next: one order, one key, one certificate', (t) =>
  walkDeaths(t, 'before'));

test('a worker that dies after any operation of an order leaves it to the next: one order, one key, one certificate', (t) =>
  walkDeaths(t, 'after'));
