/** Renewal windows: asked for as the CA says, one moment in each, and no answer of a CA makes renewals without end. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { renewalInfoId } from '../../../src/acme/renewal-info.ts';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { runRenewal } from '../../../src/domain/renewals/renewal-run.ts';
import { queueDueRenewals } from '../../../src/domain/renewals/renewals.ts';
import { queryDueWindows } from '../../../src/domain/schedule/renewal-windows.ts';
import { problem, scriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { acmeIssuer, forever, makeCertificate, rowOf } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

const lifetime = 90 * day;

/** A certificate of an ACME CA with its first version. */
async function prepared(t: TestContext, options: { renewalInfo?: boolean } = {}) {
  const world = new TestWorld();
  const ca = await scriptedAcme(t, { now: world.now, lifetime, ...options });
  const opened = await testVault(t, { world });
  const { vault } = opened;
  await acmeIssuer(vault, 'ca', ca.directoryUrl);
  await makeCertificate(vault, 'www', { issuer: 'ca' });
  const renew = async () => {
    const claimed = await claimRenewal(vault, 'worker');
    assert(claimed);
    let isOver = false;
    const running = runRenewal(vault, claimed, forever).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      world.advance(1);
      await world.turn();
    }
    await running;
  };
  await renew();
  const issuedAt = world.now();
  const row = () => rowOf(vault, 'www');
  const setWindow = async (start: number, end: number) => {
    const query = vault.db.reader.selectFrom('certificate_versions').select('certificate_pem');
    const { certificate_pem } = await query.orderBy('id', 'desc').executeTakeFirstOrThrow();
    const id = renewalInfoId(new X509Certificate(certificate_pem).raw);
    const window = { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
    ca.state.renewalWindows.set(id ?? '', window);
  };
  const ask = () => queryDueWindows(vault, 100, forever);
  const asked = () => ca.kinds().filter((kind) => kind === 'renewalInfo').length;
  assert.equal((await row()).current_version, 1);
  return { ...opened, ca, row, renew, setWindow, ask, asked, issuedAt };
}

test('a renewal time within the ARI window is chosen, and the window is requested again after 6 hours', async (t) => {
  const { world, row, setWindow, ask, asked, issuedAt } = await prepared(t);
  const [start, end] = [issuedAt + 40 * day, issuedAt + 42 * day];
  await setWindow(start, end);
  assert.equal(await ask(), 1);
  const { ari_renew_at, next_renewal_at, ari_check_at } = await row();
  assert(ari_renew_at !== null && ari_renew_at >= start && ari_renew_at <= end);
  assert.equal(next_renewal_at, ari_renew_at);
  assert.equal(ari_check_at, world.now() + 6 * hour);
  assert.equal(await ask(), 0);
  world.advance(6 * hour - 1);
  assert.equal(await ask(), 0);
  world.advance(1);
  assert.equal(await ask(), 1);
  assert.equal(asked(), 2);
  assert.equal((await row()).ari_renew_at, ari_renew_at);
});

test('a window changed to the past makes the renewal due immediately, and the order specifies replaces', async (t) => {
  const { vault, world, ca, row, renew, setWindow, ask } = await prepared(t);
  await ask();
  world.advance(day);
  await setWindow(world.now() - 2 * day, world.now() - day);
  await ask();
  assert(((await row()).next_renewal_at ?? Number.POSITIVE_INFINITY) <= world.now());
  assert.equal(await queueDueRenewals(vault, 100), 1);
  await renew();
  assert.equal((await row()).current_version, 2);
  const replaced = [...ca.state.orders.values()].map(({ replaces }) => replaces);
  assert.equal(replaced[0], undefined);
  assert.match(replaced[1] ?? '', /^[\w-]+\.[\w-]+$/);
});

test('a CA whose windows are always in the past gets one order per twentieth of the lifetime', async (t) => {
  const { vault, world, ca, row, renew, setWindow, ask, issuedAt } = await prepared(t);
  const versionMadeAt = async () => {
    const query = vault.db.reader.selectFrom('certificate_versions').select('created_at');
    return (await query.orderBy('id', 'desc').executeTakeFirstOrThrow()).created_at;
  };
  for (let round = 2; round <= 4; round += 1) {
    await setWindow(issuedAt - 2 * day, issuedAt - day);
    const madeAt = await versionMadeAt();
    assert.equal(await ask(), 1);
    const { next_renewal_at } = await row();
    assert(next_renewal_at !== null && next_renewal_at >= madeAt + lifetime / 20);
    world.advance(next_renewal_at - world.now());
    assert.equal(await queueDueRenewals(vault, 100), 1);
    await renew();
    assert.equal((await row()).current_version, round);
  }
  assert.equal(ca.state.orders.size, 4);
});

test('the window of an expired certificate is not requested', async (t) => {
  const { world, row, ask, asked } = await prepared(t);
  world.advance(lifetime);
  assert.equal(await ask(), 1);
  assert.equal(asked(), 0);
  assert.equal((await row()).ari_check_at, world.now() + day);
});

/** Thirty certificates of another CA, whose windows are due earlier. */
async function withOtherCa(t: TestContext, { vault, world, row }: Awaited<ReturnType<typeof prepared>>) {
  const other = await scriptedAcme(t, { now: world.now });
  const { id, ...shared } = await row();
  await vault.db.write(async (writer) => {
    const version = await writer.selectFrom('certificate_versions').selectAll().executeTakeFirstOrThrow();
    for (let n = 1; n <= 30; n += 1) {
      const copy = { ...shared, name: `other${n}`, ari_check_at: world.now() - n };
      const inserted = writer.insertInto('certificates').values(copy).returning('id');
      const { id: certificate_id } = await inserted.executeTakeFirstOrThrow();
      const { id: _, ...of } = version;
      const values = { ...of, certificate_id, directory_url: other.directoryUrl };
      await writer.insertInto('certificate_versions').values(values).execute();
    }
  });
  await acmeIssuer(vault, 'other', other.directoryUrl);
  const asked = () => other.kinds().filter((kind) => kind === 'renewalInfo').length;
  const round = async () => {
    await queryDueWindows(vault, 100, forever);
    return asked();
  };
  return { other, round };
}

test('a CA that fails window requests gets at most four per hour, and does not delay other CAs', async (t) => {
  const opened = await prepared(t);
  const { vault, world, ca, row, ask } = opened;
  const { other, round } = await withOtherCa(t, opened);
  other.overrideAll('renewalInfo', problem('serverInternal', 'down', { status: 500 }));
  assert((await round()) <= 4);
  assert.notEqual((await row()).ari_renew_at, null);
  const due = await vault.db.reader
    .selectFrom('certificates')
    .select('ari_check_at')
    .where('name', 'like', 'other%')
    .execute();
  for (const { ari_check_at } of due) assert.equal(ari_check_at, world.now() + hour);
  assert.equal(await ask(), 0);
  world.advance(hour);
  assert((await round()) <= 8);
  assert.equal(ca.kinds().filter((kind) => kind === 'renewalInfo').length, 1);
});

test('a CA that takes 15 s per window request gets at most eight requests per round', async (t) => {
  const opened = await prepared(t);
  const { world, row } = opened;
  const { other, round } = await withOtherCa(t, opened);
  other.overrideAll('renewalInfo', async (_, usual) => {
    world.advance(15_000);
    return usual();
  });
  const asked = await round();
  assert(asked <= 8, `${asked}`);
  assert.notEqual((await row()).ari_renew_at, null);
  assert.equal(await round(), asked, 'nothing is due');
});

test('a window after expiry is ignored, and renewal is due with a twentieth left', async (t) => {
  const { row, setWindow, ask, issuedAt } = await prepared(t);
  await setWindow(issuedAt + lifetime + day, issuedAt + lifetime + 2 * day);
  await ask();
  const { next_renewal_at } = await row();
  assert(next_renewal_at !== null);
  assert(Math.abs(next_renewal_at - (issuedAt + lifetime - lifetime / 20)) < minute);
});

for (const [what, start, end] of [
  ['ends before it begins', 42 * day, 40 * day],
  ['ends as it begins', 40 * day, 40 * day],
] as const) {
  test(`a window that ${what} is ignored, and requested again an hour later`, async (t) => {
    const { world, log, row, setWindow, ask, issuedAt } = await prepared(t);
    const before = await row();
    await setWindow(issuedAt + start, issuedAt + end);
    await ask();
    const after = await row();
    assert.deepEqual(after, { ...before, ari_check_at: world.now() + hour });
    assert(log.lines.some((line) => line.includes('failed to get the renewal window')));
  });
}

test('an unavailable window leaves the renewal time that was chosen before', async (t) => {
  const { world, ca, row, ask } = await prepared(t);
  await ask();
  const { ari_renew_at, next_renewal_at } = await row();
  ca.overrideAll('renewalInfo', { status: 500, body: 'no' });
  world.advance(day);
  await ask();
  const after = await row();
  assert.deepEqual([after.ari_renew_at, after.next_renewal_at], [ari_renew_at, next_renewal_at]);
  assert.equal(after.ari_check_at, world.now() + hour);
});

test('a CA without ARI support is checked again a day later', async (t) => {
  const { world, row, ask, asked } = await prepared(t, { renewalInfo: false });
  const { next_renewal_at } = await row();
  await ask();
  const after = await row();
  assert.deepEqual([after.ari_check_at, after.next_renewal_at], [world.now() + day, next_renewal_at]);
  assert.equal(asked(), 0);
});

test('a new version clears the window of the previous one', async (t) => {
  const { vault, world, row, renew, ask } = await prepared(t);
  await ask();
  const { next_renewal_at } = await row();
  world.advance((next_renewal_at ?? 0) - world.now());
  await queueDueRenewals(vault, 100);
  await renew();
  const { current_version, ari_window_start, ari_window_end, ari_renew_at, ari_check_at } = await row();
  assert.deepEqual([current_version, ari_window_start, ari_window_end, ari_renew_at], [2, null, null, null]);
  assert(ari_check_at !== null && ari_check_at <= world.now());
});
