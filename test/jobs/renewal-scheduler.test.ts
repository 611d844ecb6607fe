/** The scheduler: queues what is due within the minute, and does not stop because something went wrong once. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { minute } from '../../src/base/duration.ts';
import { localCli } from '../../src/domain/audit.ts';
import { createCertificate, requireCertificate } from '../../src/domain/certificates.ts';
import { createCertificateInput, parseInput } from '../../src/domain/inputs.ts';
import { runRenewalScheduler } from '../../src/jobs/renewal-scheduler.ts';
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
  await advance(opened, next_renewal_at - opened.world.now() - 1);
  assert.equal(await queued(opened), 0);
  await advance(opened, minute);
  assert.equal(await queued(opened), 1);
  assert(opened.log.lines.some((line) => line.includes('"queued":1')));
});

test('what is due at the start is queued at once, and the worker is woken', async (t) => {
  const opened = await vaultWith(t, 'a', 'b');
  const ring = t.mock.method(opened.vault.renewalQueued, 'ring');
  opened.world.advance(89 * 24 * 60 * minute);
  start(t, opened);
  await opened.world.sleeping(1);
  assert.equal(await queued(opened), 2);
  assert.equal(ring.mock.callCount(), 1);
});

test('what goes wrong is logged, and a minute later it is tried again', async (t) => {
  const opened = await vaultWith(t, 'a');
  opened.world.advance(89 * 24 * 60 * minute);
  const write = t.mock.method(opened.vault.db, 'write', () => Promise.reject(new Error('disk full')));
  start(t, opened);
  await opened.world.sleeping(1);
  assert.equal(await queued(opened), 0);
  assert(opened.log.lines.some((line) => line.includes('disk full') && line.includes('trying again')));
  write.mock.restore();
  await advance(opened, minute);
  assert.equal(await queued(opened), 1);
});

test('it stops when it is told to, in the middle of its sleep or before it began', async (t) => {
  const opened = await vaultWith(t);
  const { stop } = start(t, opened);
  await opened.world.sleeping(1);
  await stop();
  await runRenewalScheduler(opened.vault, AbortSignal.abort());
});
