/** The scheduler: queues what is due within the minute, and does not stop because something went wrong once. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, minute, second } from '../../src/base/duration.ts';
import type { World } from '../../src/base/world.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { createCertificate } from '../../src/domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../src/domain/inputs.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { requireCertificate } from '../../src/domain/versions/certificate-lookup.ts';
import { runRenewalScheduler } from '../../src/jobs/renewal-scheduler.ts';
import { change, endAll, rowOf } from '../harness/issuance/renewal-fixtures.ts';
import { type TestVault, testVault } from '../harness/test-vault.ts';

async function vaultWith(t: TestContext, ...names: string[]) {
  const opened = await testVault(t);
  for (const name of names) {
    const input = parseInput(createCertificateInput, { name, domains: ['a.example'] });
    await createCertificate(opened.vault, localCli, input);
  }
  return opened;
}

function start(t: TestContext, { vault }: TestVault) {
  const abort = new AbortController();
  const running = runRenewalScheduler(vault, abort.signal);
  const stop = async () => {
    abort.abort();
    await running;
  };
  t.after(stop);
  return { stop };
}

/** Moves the clock, and returns when the scheduler has looked and sleeps again. */
async function advance({ world }: TestVault, ms: number): Promise<void> {
  await world.sleeping(1);
  world.advance(ms);
  await world.turn();
  await world.sleeping(1);
}

const queued = async ({ vault }: TestVault) =>
  (await vault.db.reader.selectFrom('renewals').select('status').execute()).length;

test('a certificate is queued in the minute in which it is due', async (t) => {
  const opened = await vaultWith(t, 'a');
  const { next_renewal_at } = await requireCertificate(opened.vault.db.reader, 'a');
  assert(next_renewal_at);
  start(t, opened);
  // In steps that are no jumps of the clock.
  for (let left = 1; left > 0; ) {
    left = next_renewal_at - opened.world.now() - 1;
    await advance(opened, Math.min(left, 3 * day));
  }
  assert.equal(await queued(opened), 0);
  await advance(opened, minute);
  assert.equal(await queued(opened), 1);
  assert(opened.log.lines.some((line) => line.includes('"queued":1')));
});

test('certificates that are due at the start are queued immediately, and the worker is notified', async (t) => {
  const opened = await vaultWith(t, 'a', 'b');
  const ring = t.mock.method(opened.vault.renewalQueued, 'notify');
  opened.world.advance(89 * 24 * 60 * minute);
  start(t, opened);
  await opened.world.sleeping(1);
  assert.equal(await queued(opened), 2);
  assert.equal(ring.mock.callCount(), 1);
});

test('a failed round is logged and retried a minute later', async (t) => {
  const opened = await vaultWith(t, 'a');
  opened.world.advance(89 * 24 * 60 * minute);
  const write = t.mock.method(opened.vault.db, 'write', () => Promise.reject(new Error('disk full')));
  start(t, opened);
  await opened.world.sleeping(1);
  assert.equal(await queued(opened), 0);
  assert(opened.log.lines.some((line) => line.includes('disk full') && line.includes('retrying')));
  write.mock.restore();
  await advance(opened, minute);
  assert.equal(await queued(opened), 1);
});

test('the scheduler stops while it sleeps and before it starts', async (t) => {
  const opened = await vaultWith(t);
  const { stop } = start(t, opened);
  await opened.world.sleeping(1);
  await stop();
  await runRenewalScheduler(opened.vault, AbortSignal.abort());
});

const year = 365 * day;

/** What the scheduler says that it did, and not how often it looked. */
const said = ({ log }: TestVault, what: string) => log.lines.filter((line) => line.includes(what)).length;

test('a renewal that is due within the minute is queued at its exact time', async (t) => {
  const opened = await vaultWith(t, 'a', 'b');
  const { vault, world } = opened;
  // The CA told these moments; the vault's own are months away.
  await change(vault, 'a', { ari_renew_at: world.now() + 20 * second });
  await change(vault, 'b', { ari_renew_at: world.now() + 45 * second });
  start(t, opened);
  await advance(opened, 20 * second - 1);
  assert.equal(await queued(opened), 0);
  await advance(opened, 1);
  assert.equal(await queued(opened), 1);
  await advance(opened, 25 * second - 1);
  assert.equal(await queued(opened), 1);
  await advance(opened, 1);
  assert.equal(await queued(opened), 2);
});

test('the scheduler wakes once a minute, earlier for a due renewal, and at most once a second', async (t) => {
  const opened = await vaultWith(t, 'a');
  const { vault, world } = opened;
  await change(vault, 'a', { ari_renew_at: world.now() + 10 });
  const sleeps: number[] = [];
  const sleep = world.sleep;
  t.mock.method(vault.world, 'sleep', (ms: number, signal?: AbortSignal) => {
    sleeps.push(ms);
    return sleep(ms, signal);
  });
  start(t, opened);
  await advance(opened, second);
  await advance(opened, minute);
  assert.deepEqual(sleeps, [second, minute, minute]);
});

test('at most 100 renewals are queued at a time; the rest wait for the next minute', async (t) => {
  const opened = await vaultWith(t, 'a');
  const { vault } = opened;
  const { id, ...row } = await rowOf(vault, 'a');
  await vault.db.write(async (writer) => {
    for (let n = 0; n < 249; n += 1) {
      const copy = { ...row, name: `c${n}`, current_version: null };
      await writer.insertInto('certificates').values(copy).execute();
    }
  });
  await change(vault, 'a', { changed_at: 1 });
  start(t, opened);
  await opened.world.sleeping(1);
  assert.equal(await queued(opened), 100);
  await advance(opened, minute - 1);
  assert.equal(await queued(opened), 100);
  await advance(opened, 1);
  assert.equal(await queued(opened), 200);
  await advance(opened, minute);
  assert.equal(await queued(opened), 250);
  assert(id > 0);
});

test('renewals that were planned with a wrong clock are rescheduled at the start', async (t) => {
  const opened = await vaultWith(t, 'a');
  const right = (await rowOf(opened.vault, 'a')).next_renewal_at;
  await change(opened.vault, 'a', { next_renewal_at: opened.world.now() + year });
  start(t, opened);
  await opened.world.sleeping(1);
  assert.equal((await rowOf(opened.vault, 'a')).next_renewal_at, right);
  assert.equal(said(opened, 'renewals rescheduled'), 1);
});

/** A vault whose clock can jump while sleepers sleep on, as timers do: only what the clock says changes. */
async function withJumps(t: TestContext, name: string) {
  const opened = await vaultWith(t, name);
  let offset = 0;
  const world: World = { ...opened.world, now: () => opened.world.now() + offset };
  const vault: Vault = { ...opened.vault, world };
  const jump = (ms: number) => {
    offset += ms;
  };
  return { opened: { ...opened, vault }, jump };
}

test('after the clock jumps a year back, a failed renewal is retried after its original delay', async (t) => {
  const { opened, jump } = await withJumps(t, 'a');
  const { vault } = opened;
  start(t, opened);
  await opened.world.sleeping(1);
  const failed = { failed_attempts: 2, last_attempt_at: vault.world.now() };
  await change(vault, 'a', { ...failed, next_renewal_at: vault.world.now() + 10 * minute });
  jump(-year);
  await advance(opened, minute);
  assert.equal((await rowOf(vault, 'a')).next_renewal_at, vault.world.now() + 10 * minute);
  for (let n = 0; n < 9; n += 1) await advance(opened, minute);
  assert.equal(await queued(opened), 0);
  await advance(opened, minute);
  assert.equal(await queued(opened), 1);
  assert.equal(said(opened, 'renewals rescheduled'), 1);
});

test('after the clock jumps a year ahead, a renewal is queued once, an hour later; after it jumps back, none is', async (t) => {
  const { opened, jump } = await withJumps(t, 'a');
  const { vault } = opened;
  const right = (await rowOf(vault, 'a')).next_renewal_at;
  start(t, opened);
  await opened.world.sleeping(1);
  jump(year);
  await advance(opened, minute);
  assert.equal(said(opened, 'clock jumped; delaying age-based renewals'), 1);
  for (let n = 0; n < 59; n += 1) await advance(opened, minute);
  assert.equal(await queued(opened), 0);
  await advance(opened, minute);
  assert.equal(await queued(opened), 1);
  // The CA, whose clock is right, gives another of the same validity, which ended long ago by this clock.
  await endAll(vault);
  const { serial } = await vault.db.reader
    .selectFrom('certificate_versions')
    .select('serial')
    .executeTakeFirstOrThrow();
  await vault.db.write((writer) =>
    writer
      .updateTable('certificate_versions')
      .set({ created_at: vault.world.now() })
      .where('serial', '=', serial)
      .execute(),
  );
  await change(vault, 'a', { next_renewal_at: vault.world.now() + 4.5 * day });
  for (let n = 0; n < 10; n += 1) await advance(opened, minute);
  assert.equal(await queued(opened), 1);
  jump(-year);
  await advance(opened, minute);
  assert.equal((await rowOf(vault, 'a')).next_renewal_at, right);
  for (let n = 0; n < 10; n += 1) await advance(opened, minute);
  assert.equal(await queued(opened), 1);
});

for (const [what, sign] of [
  ['gains', 1],
  ['loses', -1],
] as const) {
  test(`a clock that ${what} 5 minutes in one is not treated as a jump, and a second more is`, async (t) => {
    const { opened, jump } = await withJumps(t, 'a');
    start(t, opened);
    await opened.world.sleeping(1);
    await change(opened.vault, 'a', { next_renewal_at: opened.world.now() + year });
    jump(sign * 5 * minute);
    await advance(opened, minute);
    assert.equal(said(opened, 'renewals rescheduled'), 0);
    jump(sign * (5 * minute + second));
    await advance(opened, minute);
    assert.equal(said(opened, 'renewals rescheduled'), 1);
  });
}

test('failed rescheduling is retried a minute later', async (t) => {
  const opened = await vaultWith(t, 'a');
  const { vault, world } = opened;
  const right = (await rowOf(vault, 'a')).next_renewal_at;
  await change(vault, 'a', { next_renewal_at: world.now() + year });
  const write = t.mock.method(vault.db, 'write', () => Promise.reject(new Error('disk full')));
  start(t, opened);
  await world.sleeping(1);
  write.mock.restore();
  await advance(opened, minute);
  assert.equal((await rowOf(vault, 'a')).next_renewal_at, right);
});
