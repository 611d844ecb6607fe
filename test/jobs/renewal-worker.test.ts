/** The worker: renews what is queued, a few at a time, shows that it lives, and stops with clean hands. */
import assert from 'node:assert/strict';
import { mock, type TestContext, test } from 'node:test';
import { minute, second } from '../../src/base/duration.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { createCertificate } from '../../src/domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../src/domain/inputs.ts';
import { claimRenewal, leaseDuration } from '../../src/domain/renewals/renewal-claim.ts';
import { requestRenewal } from '../../src/domain/renewals/renewals.ts';
import { runRenewalScheduler } from '../../src/jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../../src/jobs/renewal-worker.ts';
import { type AcmeKind, problem, type ScriptedAcme, scriptedAcme } from '../harness/ca/scripted-acme.ts';
import { acmeIssuer, makeCertificate, rowOf, until } from '../harness/issuance/renewal-fixtures.ts';
import { type TestVault, testVault } from '../harness/test-vault.ts';
import { TestWorld } from '../harness/test-world.ts';

async function vaultWith(t: TestContext, count: number) {
  const opened = await testVault(t);
  for (let n = 1; n <= count; n += 1) {
    const input = parseInput(createCertificateInput, { name: `www${n}`, domains: ['a.example'] });
    await createCertificate(opened.vault, localCli, input);
  }
  return opened;
}

function start(t: TestContext, { vault }: TestVault, job = runRenewalWorker) {
  const abort = new AbortController();
  const running = job(vault, abort.signal);
  const stop = async () => {
    abort.abort();
    await running;
  };
  t.after(stop);
  return { abort, stop };
}

const statuses = async ({ vault }: TestVault) =>
  (await vault.db.reader.selectFrom('renewals').select('status').orderBy('id').execute()).map(
    ({ status }) => status,
  );

/** Resolves when this many renewals have ended. */
async function ended(opened: TestVault, count: number): Promise<void> {
  const open = new Set(['queued', 'running']);
  while ((await statuses(opened)).filter((status) => !open.has(status)).length < count) {
    await opened.world.turn();
  }
}

test('a renewal requested in this process starts immediately, without the clock moving', async (t) => {
  const opened = await vaultWith(t, 1);
  start(t, opened);
  await opened.world.sleeping(1);
  await requestRenewal(opened.vault, localCli, 'www1');
  await ended(opened, 1);
  assert.deepEqual(await statuses(opened), ['succeeded']);
});

test('a renewal that another process queued is noticed within a second', async (t) => {
  const opened = await vaultWith(t, 1);
  start(t, opened);
  await opened.world.sleeping(1);
  const row = { certificate_id: 1, status: 'queued' as const, requested_by: 'x', requested_at: 1 };
  await opened.vault.db.write((writer) => writer.insertInto('renewals').values(row).execute());
  opened.world.advance(second);
  await ended(opened, 1);
  assert.deepEqual(await statuses(opened), ['succeeded']);
});

test('a renewal that a dead process left behind is started when its lease has expired', async (t) => {
  const opened = await vaultWith(t, 1);
  await requestRenewal(opened.vault, localCli, 'www1');
  await claimRenewal(opened.vault, 'dead');
  start(t, opened);
  await opened.world.sleeping(1);
  assert.deepEqual(await statuses(opened), ['running']);
  opened.world.advance(leaseDuration);
  await ended(opened, 1);
  assert.deepEqual(await statuses(opened), ['succeeded']);
});

test('all 25 queued renewals are executed, at most ten at the same time', async (t) => {
  const opened = await vaultWith(t, 25);
  for (let n = 1; n <= 25; n += 1) await requestRenewal(opened.vault, localCli, `www${n}`);
  start(t, opened);
  let most = 0;
  for (let open = 25; open > 0; ) {
    const now = await statuses(opened);
    most = Math.max(most, now.filter((status) => status === 'running').length);
    open = now.filter((status) => status !== 'succeeded').length;
    await opened.world.turn();
  }
  assert(most >= 1 && most <= 10, String(most));
});

test('stop finishes running renewals of the private CA and starts no others', async (t) => {
  const opened = await vaultWith(t, 25);
  for (let n = 1; n <= 25; n += 1) await requestRenewal(opened.vault, localCli, `www${n}`);
  const { stop } = start(t, opened);
  while (!(await statuses(opened)).includes('running')) await opened.world.turn();
  await stop();
  const now = await statuses(opened);
  const ended = now.filter((status) => status === 'succeeded').length;
  assert(ended >= 1 && ended < 25, String(ended));
  assert.deepEqual(now, [...Array(ended).fill('succeeded'), ...Array(25 - ended).fill('queued')]);
});

test('a worker that was stopped before it started claims no renewal', async (t) => {
  const opened = await vaultWith(t, 1);
  await requestRenewal(opened.vault, localCli, 'www1');
  await runRenewalWorker(opened.vault, AbortSignal.abort());
  assert.deepEqual(await statuses(opened), ['queued']);
});

test('the heartbeat is fresh except while the queue cannot be read', async (t) => {
  const opened = await vaultWith(t, 1);
  const { vault, world, log } = opened;
  start(t, opened);
  await world.sleeping(1);
  assert.equal(vault.renewalHeartbeat.isFresh, true);
  const select = t.mock.method(vault.db.reader, 'getExecutor', () => {
    throw new Error('unreadable');
  });
  world.advance(minute);
  await world.sleeping(1);
  assert.equal(vault.renewalHeartbeat.isFresh, false);
  assert(log.lines.some((line) => line.includes('unreadable') && line.includes('retrying')));
  select.mock.restore();
  world.advance(second);
  await world.sleeping(1);
  assert.equal(vault.renewalHeartbeat.isFresh, true);
});

test('a renewal interrupted by failed writes is logged and resumed when its lease has expired', async (t) => {
  const opened = await vaultWith(t, 1);
  const { vault, world, log } = opened;
  await requestRenewal(vault, localCli, 'www1');
  const original = vault.db.write.bind(vault.db);
  let writes = 0;
  const write = t.mock.method(vault.db, 'write', (work: Parameters<typeof original>[0]) => {
    writes += 1;
    return writes === 1 ? original(work) : Promise.reject(new Error('disk full'));
  });
  start(t, opened);
  while (!log.lines.some((line) => line.includes('renewal interrupted'))) await world.turn();
  write.mock.restore();
  assert.deepEqual(await statuses(opened), ['running']);
  await world.sleeping(1);
  world.advance(leaseDuration);
  await ended(opened, 1);
  assert.deepEqual(await statuses(opened), ['succeeded']);
});

test('a failed lease refresh is logged and retried, and the renewal continues', async (t) => {
  const opened = await vaultWith(t, 1);
  const { vault, world, log } = opened;
  await requestRenewal(vault, localCli, 'www1');
  const original = vault.db.write.bind(vault.db);
  const gate = Promise.withResolvers<void>();
  let writes = 0;
  // First the claim, then the new key, which waits; then the lease, which fails.
  t.mock.method(vault.db, 'write', async (work: Parameters<typeof original>[0]) => {
    writes += 1;
    if (writes === 3) throw new Error('disk full');
    if (writes === 2) await gate.promise;
    return original(work);
  });
  start(t, opened);
  while (writes < 2) await world.turn();
  world.advance(20 * second);
  const leaseEnd = async () =>
    (await vault.db.reader.selectFrom('renewals').select('lease_expires_at').executeTakeFirstOrThrow())
      .lease_expires_at;
  await until(vault, () => log.lines.some((line) => line.includes('failed to refresh the lease')));
  world.advance(2 * second);
  await until(vault, async () => (await leaseEnd()) === world.now() + minute);
  gate.resolve();
  await ended(opened, 1);
  assert.deepEqual(await statuses(opened), ['succeeded']);
});

test('with the scheduler, due certificates are renewed without a request, and are not due again', async (t) => {
  const opened = await vaultWith(t, 2);
  const { vault, world } = opened;
  start(t, opened);
  start(t, opened, runRenewalScheduler);
  // In steps that are no jumps of the clock.
  for (let days = 0; days < 63; days += 3) {
    await world.sleeping(2);
    world.advance(3 * 24 * 60 * minute);
    await world.turn();
  }
  await ended(opened, 2);
  for (let n = 0; n < 3; n += 1) {
    await world.sleeping(2);
    world.advance(minute);
    await world.turn();
  }
  assert.deepEqual(await statuses(opened), ['succeeded', 'succeeded']);
  const current = vault.db.reader.selectFrom('certificates').select('current_version').execute();
  assert.deepEqual(await current, [{ current_version: 2 }, { current_version: 2 }]);
});

/** A vault with issuers `ca1`, `ca2` … and so many certificates queued at each; the CAs keep silent at `kind`. */
async function vaultWithCas(t: TestContext, issuers: number, each: number, kind: AcmeKind) {
  const world = new TestWorld();
  const opened = await testVault(t, { world });
  const gate = Promise.withResolvers<void>();
  const cas: ScriptedAcme[] = [];
  for (let n = 1; n <= issuers; n += 1) {
    const ca = await scriptedAcme(t, { now: world.now });
    ca.overrideAll(kind, async (_, usual) => {
      await gate.promise;
      return usual();
    });
    cas.push(ca);
    await acmeIssuer(opened.vault, `ca${n}`, ca.directoryUrl);
  }
  for (let n = 1; n <= each; n += 1) {
    for (let issuer = 1; issuer <= issuers; issuer += 1) {
      await makeCertificate(opened.vault, `www${n}-${issuer}`, { issuer: `ca${issuer}` });
    }
  }
  const [ca] = cas;
  assert(ca);
  /** How many renewals each issuer has in hand. */
  const running = async () => {
    const rows = await opened.vault.db.reader
      .selectFrom('renewals')
      .innerJoin('issuers', 'issuers.id', 'renewals.issuer_id')
      .select(['issuers.name', ({ fn }) => fn.countAll<number>().as('count')])
      .where('status', '=', 'running')
      .groupBy('issuers.name')
      .orderBy('issuers.name')
      .execute();
    return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
  };
  const inHand = async () => Object.values(await running()).reduce((sum, count) => sum + count, 0);
  const asked = (what: AcmeKind) =>
    cas.reduce((sum, { kinds }) => sum + kinds().filter((one) => one === what).length, 0);
  return { ...opened, ca, gate, running, inHand, asked };
}

/** Goes on when so many renewals have succeeded; the clock passes slowly meanwhile. */
async function allSucceed({ vault, world }: TestVault, count: number): Promise<void> {
  await until(vault, async () => {
    world.advance(1);
    return (
      (await statuses({ vault } as TestVault)).filter((status) => status === 'succeeded').length === count
    );
  });
}

/** Resolves when the worker has looked at the queue once more. */
async function nextRound({ vault, world }: TestVault): Promise<void> {
  const beaten = Promise.withResolvers<void>();
  mock.method(vault.renewalHeartbeat, 'beat', beaten.resolve, { times: 1 });
  world.advance(second);
  await beaten.promise;
}

test('an issuer has at most six renewals through one DNS provider, while another issuer continues', async (t) => {
  const opened = await vaultWithCas(t, 2, 13, 'newOrder');
  const { vault, gate, running, inHand, asked } = opened;
  start(t, opened);
  await until(vault, async () => (await inHand()) >= 12 && asked('newOrder') >= 12);
  for (let n = 0; n < 3; n += 1) {
    await nextRound(opened);
    assert.deepEqual(await running(), { ca1: 6, ca2: 6 });
  }
  assert.equal(asked('newOrder'), 12);
  gate.resolve();
  await allSucceed(opened, 26);
  assert.equal(asked('newOrder'), 26);
});

test('nine ACME issuers share the slots evenly, and the first in the queue come first', async (t) => {
  const opened = await vaultWithCas(t, 9, 5, 'newOrder');
  const { vault, gate, inHand } = opened;
  start(t, opened);
  await until(vault, async () => (await inHand()) >= 27);
  for (let n = 0; n < 3; n += 1) {
    await nextRound(opened);
    assert.equal(await inHand(), 27);
  }
  assert.deepEqual(await statuses(opened), [...Array(27).fill('running'), ...Array(18).fill('queued')]);
  gate.resolve();
  await allSucceed(opened, 45);
});

test('stopping returns renewals that wait for a CA to the queue, and the next start resumes', async (t) => {
  const opened = await vaultWithCas(t, 1, 3, 'authorization');
  const { vault, world, ca, gate, inHand, asked } = opened;
  const { stop } = start(t, opened);
  await until(vault, async () => (await inHand()) === 3 && asked('authorization') === 3);
  const before = world.now();
  await stop();
  assert.equal(world.now(), before);
  const rows = () => vault.db.reader.selectFrom('renewals').selectAll().orderBy('id').execute();
  const given = await rows();
  for (const row of given) {
    assert.deepEqual([row.status, row.claims, row.lease_owner], ['queued', 0, null]);
    assert(row.order_url !== null && row.sealed_private_key !== null);
  }
  gate.resolve();
  start(t, opened);
  await allSucceed(opened, 3);
  assert.equal(asked('newOrder'), 3);
  assert.deepEqual(
    [...ca.state.orders.keys()].toSorted(),
    given.map(({ order_url }) => order_url).toSorted(),
  );
  assert.equal(asked('newAccount'), 1);
});

test('a renewal whose lease was lost is abandoned while it waits for the CA', async (t) => {
  const opened = await vaultWithCas(t, 1, 1, 'newOrder');
  const { vault, world, log, asked } = opened;
  start(t, opened);
  await until(vault, () => asked('newOrder') === 1);
  const other = { lease_owner: 'other', lease_expires_at: world.now() + minute };
  await vault.db.write((writer) => writer.updateTable('renewals').set(other).execute());
  world.advance(20 * second);
  await until(vault, () => log.lines.some((line) => line.includes('lease lost to another worker')));
  const row = await vault.db.reader.selectFrom('renewals').selectAll().executeTakeFirstOrThrow();
  assert.deepEqual([row.status, row.lease_owner], ['running', 'other']);
  assert.equal((await rowOf(vault, 'www1-1')).failed_attempts, 0);
});

test('a busy CA gets no order until its Retry-After, while another issuer continues', async (t) => {
  const opened = await vaultWithCas(t, 2, 2, 'other');
  const { vault, world, ca } = opened;
  await vault.db.write((writer) =>
    writer.updateTable('renewals').set({ status: 'succeeded' }).where('id', '!=', 1).execute(),
  );
  ca.override(
    'newOrder',
    problem('serverInternal', 'slow down', { status: 503, headers: { 'Retry-After': '1800' } }),
  );
  start(t, opened);
  await until(vault, async () => (await statuses(opened))[0] === 'failed');
  await requestRenewal(vault, localCli, 'www2-1');
  await requestRenewal(vault, localCli, 'www2-2');
  await until(vault, async () => {
    world.advance(1);
    return (await statuses(opened)).at(-1) === 'succeeded';
  });
  assert.equal((await statuses(opened)).at(-2), 'queued');
  const orders = () => ca.kinds().filter((kind) => kind === 'newOrder').length;
  assert.equal(orders(), 1);
  world.advance(30 * minute);
  await until(vault, async () => {
    world.advance(1);
    return (await statuses(opened)).at(-2) === 'succeeded';
  });
  assert.equal(orders(), 2);
});
