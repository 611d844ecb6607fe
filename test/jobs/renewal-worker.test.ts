/** The worker: renews what is queued, a few at a time, shows that it lives, and stops with clean hands. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { minute, second } from '../../src/base/duration.ts';
import { localCli } from '../../src/domain/audit.ts';
import { createCertificate } from '../../src/domain/certificates.ts';
import { createCertificateInput, parseInput } from '../../src/domain/inputs.ts';
import { claimRenewal, leaseDuration } from '../../src/domain/renewal-run.ts';
import { requestRenewal } from '../../src/domain/renewals.ts';
import { runRenewalScheduler } from '../../src/jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../../src/jobs/renewal-worker.ts';
import { type TestVault, testVault } from '../harness/test-vault.ts';

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

test('a renewal that is asked for in this process is taken up at once, without the clock moving', async (t) => {
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

test('a renewal that a dead process left behind is taken up when its lease has run out', async (t) => {
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

test('more than are carried out at a time are all carried out, never more than four at once', async (t) => {
  const opened = await vaultWith(t, 10);
  for (let n = 1; n <= 10; n += 1) await requestRenewal(opened.vault, localCli, `www${n}`);
  start(t, opened);
  let most = 0;
  for (let open = 10; open > 0; ) {
    const now = await statuses(opened);
    most = Math.max(most, now.filter((status) => status === 'running').length);
    open = now.filter((status) => status !== 'succeeded').length;
    await opened.world.turn();
  }
  assert.equal(most, 4);
});

test('when it is told to stop it ends what is in hand and takes up nothing more', async (t) => {
  const opened = await vaultWith(t, 6);
  for (let n = 1; n <= 6; n += 1) await requestRenewal(opened.vault, localCli, `www${n}`);
  const { stop } = start(t, opened);
  while (!(await statuses(opened)).includes('running')) await opened.world.turn();
  await stop();
  const now = await statuses(opened);
  assert.equal(now.includes('running'), false);
  assert.deepEqual(now, [...Array(4).fill('succeeded'), 'queued', 'queued']);
});

test('a worker that was stopped before it began takes up nothing', async (t) => {
  const opened = await vaultWith(t, 1);
  await requestRenewal(opened.vault, localCli, 'www1');
  await runRenewalWorker(opened.vault, AbortSignal.abort());
  assert.deepEqual(await statuses(opened), ['queued']);
});

test('it shows that it lives, but not while the queue cannot be read', async (t) => {
  const opened = await vaultWith(t, 1);
  const { vault, world, log } = opened;
  start(t, opened);
  await world.sleeping(1);
  assert.equal(vault.renewalHeartbeat.isFresh, true);
  const select = t.mock.method(vault.db.reader, 'selectFrom', () => {
    throw new Error('unreadable');
  });
  world.advance(minute);
  await world.turn();
  await world.sleeping(1);
  assert.equal(vault.renewalHeartbeat.isFresh, false);
  assert(log.lines.some((line) => line.includes('unreadable') && line.includes('trying again')));
  select.mock.restore();
  world.advance(second);
  await world.turn();
  assert.equal(vault.renewalHeartbeat.isFresh, true);
});

test('a renewal that stops because nothing can be written is logged and taken up again', async (t) => {
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
  while (!log.lines.some((line) => line.includes('a renewal stopped'))) await world.turn();
  write.mock.restore();
  assert.deepEqual(await statuses(opened), ['running']);
  await world.sleeping(1);
  world.advance(leaseDuration);
  await ended(opened, 1);
  assert.deepEqual(await statuses(opened), ['succeeded']);
});

test('a lease that cannot be kept is logged, and does not stop the process', async (t) => {
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
  while (!log.lines.some((line) => line.includes('lease of a renewal could not be kept'))) await world.turn();
  gate.resolve();
  await ended(opened, 1);
  assert.deepEqual(await statuses(opened), ['succeeded']);
});

test('with the scheduler beside it, what is due is renewed with nobody asking, and is not due again', async (t) => {
  const opened = await vaultWith(t, 2);
  const { vault, world } = opened;
  start(t, opened);
  start(t, opened, runRenewalScheduler);
  await world.sleeping(2);
  world.advance(61 * 24 * 60 * minute);
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
