/** The watcher of renewal windows: asks by itself after an order, keeps what was chosen, and goes on after trouble. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { renewalInfoId } from '../../src/acme/renewal-info.ts';
import { day, hour, minute } from '../../src/base/duration.ts';
import { openVault } from '../../src/cli/runtime/open-vault.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../src/domain/certificates/certificate-update.ts';
import { parseInput, updateCertificateInput } from '../../src/domain/inputs.ts';
import { requestRenewal } from '../../src/domain/renewals/renewals.ts';
import { requireVersion } from '../../src/domain/versions/versions.ts';
import { runWindowWatcher } from '../../src/jobs/periodic-jobs.ts';
import { type ScriptedReply, scriptedAcme } from '../harness/ca/scripted-acme.ts';
import { countOf, type Engine, engine } from '../harness/issuance/engine-vault.ts';
import { acmeIssuer, rowOf, until } from '../harness/issuance/renewal-fixtures.ts';
import { settingsFor } from '../harness/test-vault.ts';

/** A certificate that was just issued, with the watcher beside it; `asked` waits until the CA was asked so often. */
async function watched(t: TestContext) {
  const opened = await engine(t, { lifetime: 90 * day });
  assert.equal((await opened.work()).status, 'succeeded');
  const version = await requireVersion(opened.vault.db.reader, await rowOf(opened.vault, 'www'), undefined);
  const id = renewalInfoId(new X509Certificate(version.certificate_pem).raw) ?? '';
  return { ...opened, id };
}

/** One round of the watcher, with a clock of its own, so that no minute passes by itself. */
async function round({ vault }: Pick<Engine, 'vault'>): Promise<number[]> {
  const stop = new AbortController();
  const waits: number[] = [];
  const { now, elapsed, randomBytes, turn } = vault.world;
  const sleep = async (ms: number, signal?: AbortSignal) => {
    if (signal !== stop.signal) return vault.world.sleep(ms, signal);
    waits.push(ms);
    stop.abort();
    return undefined;
  };
  await runWindowWatcher({ ...vault, world: { now, elapsed, randomBytes, turn, sleep } }, stop.signal);
  return waits;
}

test('the renewal window is requested as often as Retry-After says, between once a minute and once a day', async (t) => {
  for (const [header, wait] of [
    ['7200', 2 * hour],
    ['1', minute],
    ['9999999', day],
    [undefined, 6 * hour],
    ['tomorrow', 6 * hour],
  ] as const) {
    const opened = await watched(t);
    const { vault, world, ca } = opened;
    ca.override('renewalInfo', async (_, usual): Promise<ScriptedReply> => {
      const { body } = await usual();
      return { body: body ?? '', ...(header !== undefined && { headers: { 'Retry-After': header } }) };
    });
    assert.deepEqual(await round(opened), [minute]);
    assert.equal((await rowOf(vault, 'www')).ari_check_at, world.now() + wait, String(header));
    world.advance(wait - 1);
    await round(opened);
    assert.equal(countOf(ca, 'renewalInfo'), 1, String(header));
    world.advance(1);
    await round(opened);
    assert.equal(countOf(ca, 'renewalInfo'), 2, String(header));
  }
});

test('the chosen time survives a restart, and is chosen again when the window changes', async (t) => {
  const opened = await watched(t);
  const { vault, world, ca, id, dataDir } = opened;
  await round(opened);
  const { ari_renew_at: chosen } = await rowOf(vault, 'www');
  world.advance(day);
  const again = await openVault(settingsFor(dataDir), world, 'refuse');
  await round(again);
  await again.close();
  assert.equal((await rowOf(vault, 'www')).ari_renew_at, chosen);
  assert.equal(countOf(ca, 'renewalInfo'), 2);
  const [start, end] = [world.now() + 10 * day, world.now() + 12 * day];
  ca.state.renewalWindows.set(id, { start: new Date(start).toISOString(), end: new Date(end).toISOString() });
  world.advance(day);
  await round(opened);
  const row = await rowOf(vault, 'www');
  assert(row.ari_renew_at !== null && row.ari_renew_at >= start && row.ari_renew_at <= end);
  assert.equal(row.next_renewal_at, row.ari_renew_at);
});

test('chosen renewal times are spread over the whole window', async (t) => {
  const opened = await watched(t);
  const { vault, world, ca, id } = opened;
  const moments: number[] = [];
  for (let n = 1; n <= 24; n += 1) {
    const [start, end] = [world.now() + n * day, world.now() + (n + 10) * day];
    ca.state.renewalWindows.set(id, {
      start: new Date(start).toISOString(),
      end: new Date(end).toISOString(),
    });
    world.advance(day);
    await round(opened);
    moments.push(((await rowOf(vault, 'www')).ari_renew_at ?? 0) - start);
  }
  assert(moments.every((moment) => moment >= 0 && moment <= 10 * day));
  const thirds = new Set(moments.map((moment) => Math.min(2, Math.floor(moment / ((10 * day) / 3)))));
  assert.equal(thirds.size, 3);
});

test('an order reports the replaced certificate only to the CA that issued it', async (t) => {
  const opened = await watched(t);
  const { vault, world, ca, id, work } = opened;
  await requestRenewal(vault, localCli, 'www');
  await work();
  assert.deepEqual(
    [...ca.state.orders.values()].map(({ replaces }) => replaces),
    [undefined, id],
  );
  const other = await scriptedAcme(t, { now: world.now });
  await acmeIssuer(vault, 'other', other.directoryUrl);
  await changeCertificate(vault, localCli, 'www', parseInput(updateCertificateInput, { issuer: 'other' }));
  await requestRenewal(vault, localCli, 'www');
  assert.equal((await work()).status, 'succeeded');
  assert.deepEqual(
    [...other.state.orders.values()].map(({ replaces }) => replaces),
    [undefined],
  );
  // Whom to ask about a version is decided by who made it.
  await round(opened);
  assert.deepEqual([countOf(ca, 'renewalInfo'), countOf(other, 'renewalInfo')], [0, 1]);
});

test('the renewal window of a disabled certificate is not requested', async (t) => {
  const opened = await watched(t);
  await changeCertificate(
    opened.vault,
    localCli,
    'www',
    parseInput(updateCertificateInput, { disabled: true }),
  );
  await round(opened);
  assert.equal(countOf(opened.ca, 'renewalInfo'), 0);
});

test('the renewal window is requested again an hour after the CA was unreachable', async (t) => {
  const opened = await watched(t);
  const { vault, world, ca, log } = opened;
  ca.override('renewalInfo', { cutAfter: 0 }, { cutAfter: 0 }, { cutAfter: 0 });
  const { next_renewal_at } = await rowOf(vault, 'www');
  await round(opened);
  const row = await rowOf(vault, 'www');
  assert.deepEqual([row.ari_renew_at, row.next_renewal_at], [null, next_renewal_at]);
  assert.equal(row.ari_check_at, world.now() + hour);
  assert(log.lines.some((line) => line.includes('failed to get the renewal window')));
});

test('stop aborts a pending request and changes nothing', async (t) => {
  const opened = await watched(t);
  const { vault, ca } = opened;
  const before = await rowOf(vault, 'www');
  ca.override('renewalInfo', { until: new Promise(() => undefined) });
  const stop = new AbortController();
  const running = runWindowWatcher(vault, stop.signal);
  await until(vault, () => countOf(ca, 'renewalInfo') === 1);
  stop.abort();
  await running;
  assert.deepEqual(await rowOf(vault, 'www'), before);
});

test('a failed read of the table is logged and retried a minute later', async (t) => {
  const opened = await watched(t);
  const { vault, log } = opened;
  const select = t.mock.method(vault.db.reader, 'selectFrom', () => {
    throw new Error('unreadable');
  });
  assert.deepEqual(await round(opened), [minute]);
  select.mock.restore();
  assert(log.lines.some((line) => line.includes('unreadable') && line.includes('retrying')));
});
