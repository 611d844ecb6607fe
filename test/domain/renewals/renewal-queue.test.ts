/** The queue: one open renewal per certificate, and the issuer that it asks, which is settled as it is queued. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, hour } from '../../../src/base/duration.ts';
import { findIssuer, updateAcmeIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { findRenewal, updateRenewal } from '../../../src/db/tables/renewals/renewals.ts';
import { system } from '../../../src/domain/audit/audit.ts';
import { queueRenewal, redirectWaiting } from '../../../src/domain/renewals/renewal-queue.ts';
import {
  change,
  endAll,
  giveVersion,
  makeCertificate,
  rowOf,
  silentIssuer,
} from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

/** The certificate `a` of an ACME issuer with a fallback, with a version of this lifetime or none. */
async function prepared(
  t: TestContext,
  { lifetime, fallback = true }: { lifetime?: number; fallback?: boolean },
) {
  const opened = await testVault(t);
  const { vault } = opened;
  const [primary, second] = [await silentIssuer(vault, 'primary'), await silentIssuer(vault, 'second')];
  await makeCertificate(vault, 'a', { issuer: 'primary', ...(fallback && { fallback_issuer: 'second' }) });
  await endAll(vault);
  if (lifetime !== undefined) await giveVersion(vault, 'a', lifetime);
  const names = new Map([
    [primary, 'primary'],
    [second, 'second'],
  ]);
  /** Queues a renewal after so many failures, and tells whom it asks. */
  const asked = async (failed_attempts: number) => {
    await change(vault, 'a', { failed_attempts, last_attempt_at: vault.world.now() });
    const certificate = await rowOf(vault, 'a');
    const { issuer_id } = await vault.db.write((writer) => queueRenewal(vault, writer, system, certificate));
    await endAll(vault);
    return names.get(issuer_id ?? 0);
  };
  const pause = (paused_until: number, issuer = primary) =>
    vault.db.write((writer) => updateAcmeIssuer(writer, issuer, { paused_until }));
  return { ...opened, primary, second, asked, pause };
}

test('far from expiry the primary issuer is used after any number of failures', async (t) => {
  const { asked } = await prepared(t, { lifetime: 90 * day });
  for (let failures = 0; failures < 8; failures += 1) assert.equal(await asked(failures), 'primary');
});

for (const [name, lifetime, left] of [
  ['90 days', 90 * day, 15 * day],
  ['160 hours', 160 * hour, 40 * hour],
] as const) {
  test(`${name}: near expiry, primary and fallback alternate after two failures`, async (t) => {
    const { asked, world } = await prepared(t, { lifetime });
    world.advance(lifetime - left);
    const whom = [];
    for (let failures = 0; failures < 7; failures += 1) whom.push(await asked(failures));
    const turns = ['primary', 'primary', 'second', 'primary', 'second', 'primary', 'second'];
    assert.deepEqual(whom, turns);
  });
}

test('without a version, primary and fallback alternate after three failures', async (t) => {
  const { asked } = await prepared(t, {});
  const whom = [];
  for (let failures = 0; failures < 7; failures += 1) whom.push(await asked(failures));
  const turns = ['primary', 'primary', 'primary', 'second', 'primary', 'second', 'primary'];
  assert.deepEqual(whom, turns);
});

test('near expiry a paused primary issuer is replaced by the fallback', async (t) => {
  const { asked, pause, world } = await prepared(t, { lifetime: 90 * day });
  world.advance(76 * day);
  await pause(world.now() + hour);
  assert.deepEqual([await asked(0), await asked(1)], ['second', 'second']);
  await pause(world.now());
  assert.equal(await asked(0), 'primary');
});

test('far from expiry a paused primary issuer is kept', async (t) => {
  const { asked, pause, world } = await prepared(t, { lifetime: 90 * day });
  await pause(world.now() + hour);
  assert.equal(await asked(0), 'primary');
});

test('near expiry a paused fallback is replaced by the primary issuer', async (t) => {
  const { asked, pause, world, second } = await prepared(t, { lifetime: 90 * day });
  world.advance(76 * day);
  await pause(world.now() + hour, second);
  assert.deepEqual([await asked(0), await asked(2)], ['primary', 'primary']);
});

test('without a fallback the primary issuer is used even when paused near expiry', async (t) => {
  const { asked, pause, world } = await prepared(t, { lifetime: 90 * day, fallback: false });
  world.advance(89 * day);
  await pause(world.now() + hour);
  for (const failures of [0, 2, 4]) assert.equal(await asked(failures), 'primary');
});

test('the private CA may be the fallback of an ACME CA, and the other way round', async (t) => {
  const { vault, world } = await prepared(t, {});
  const local = (await findIssuer(vault.db.reader, 'local-ca'))?.id;
  await makeCertificate(vault, 'b', { fallback_issuer: 'primary' });
  world.advance(89 * day);
  const queued = async (name: string, failed_attempts: number) => {
    await change(vault, name, { failed_attempts, last_attempt_at: world.now() });
    const certificate = await rowOf(vault, name);
    const row = await vault.db.write((writer) => queueRenewal(vault, writer, system, certificate));
    await endAll(vault);
    return row.issuer_id;
  };
  assert.equal(await queued('b', 0), local);
  assert.equal(await queued('b', 2), (await findIssuer(vault.db.reader, 'primary'))?.id);
  await makeCertificate(vault, 'c', { issuer: 'primary', fallback_issuer: 'local-ca' });
  await endAll(vault);
  assert.equal(await queued('c', 3), local);
});

test('an open renewal stays as it was queued, regardless of later changes', async (t) => {
  const { vault, world, primary } = await prepared(t, { lifetime: 90 * day });
  const certificate = await rowOf(vault, 'a');
  const queue = () => vault.db.write((writer) => queueRenewal(vault, writer, system, certificate));
  const first = await queue();
  world.advance(76 * day);
  await change(vault, 'a', { failed_attempts: 2, last_attempt_at: world.now() });
  const again = await queue();
  assert.deepEqual([again.id, again.issuer_id], [first.id, primary]);
});

test('a renewal waiting for a paused issuer moves to the fallback near expiry, not before', async (t) => {
  const { vault, world, primary, second, pause } = await prepared(t, { lifetime: 90 * day });
  const certificate = await rowOf(vault, 'a');
  await vault.db.write((writer) => queueRenewal(vault, writer, system, certificate));
  const asked = async () =>
    (
      await vault.db.reader
        .selectFrom('renewals')
        .selectAll()
        .where('status', '=', 'queued')
        .executeTakeFirst()
    )?.issuer_id;
  await pause(world.now() + 80 * day);
  assert.equal(await redirectWaiting(vault, 10), 0);
  world.advance(74 * day);
  assert.equal(await redirectWaiting(vault, 10), 0);
  world.advance(2 * day);
  assert.equal(await redirectWaiting(vault, 10), 1);
  assert.equal(await asked(), second);
  // A fallback that wants to wait as well is no better.
  await pause(world.now() + day, second);
  assert.equal(await redirectWaiting(vault, 10), 0);
  await pause(world.now());
  assert.equal(await redirectWaiting(vault, 10), 1);
  assert.equal(await asked(), primary);
});

test('a renewal that a limit delays, or that no worker started for an hour, goes to the fallback near expiry', async (t) => {
  const { vault, world, second } = await prepared(t, { lifetime: 90 * day });
  const certificate = await rowOf(vault, 'a');
  world.advance(76 * day);
  const { id } = await vault.db.write((writer) => queueRenewal(vault, writer, system, certificate));
  const issuer = async () => (await findRenewal(vault.db.reader, id))?.issuer_id;
  assert.equal(await redirectWaiting(vault, 10), 0);
  const hold = { held_until: world.now() + day, hold_reason: 'a limit' };
  await vault.db.write((writer) => updateRenewal(writer, id, hold));
  assert.equal(await redirectWaiting(vault, 10), 1);
  const moved = await findRenewal(vault.db.reader, id);
  assert.deepEqual([moved?.issuer_id, moved?.held_until], [second, null]);
  await endAll(vault);
  const next = await vault.db.write((writer) => queueRenewal(vault, writer, system, certificate));
  world.advance(hour);
  assert.equal(await redirectWaiting(vault, 10), 0);
  world.advance(1);
  assert.equal(await redirectWaiting(vault, 10), 1);
  assert.equal((await findRenewal(vault.db.reader, next.id))?.issuer_id, second);
  assert.equal(await redirectWaiting(vault, 10), 0);
  assert.notEqual(await issuer(), undefined);
});
