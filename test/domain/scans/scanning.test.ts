/** Scans: what they find, and that they continue where another process stopped. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { realWorld } from '../../../src/base/world.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { findFindings, findingView } from '../../../src/domain/scans/findings.ts';
import { createScanInput } from '../../../src/domain/scans/scan-inputs.ts';
import { nextScan, workOnScan } from '../../../src/domain/scans/scanning.ts';
import {
  claimDuration,
  createScan,
  deleteScan,
  listScans,
  maxScans,
  requireScan,
  scanView,
} from '../../../src/domain/scans/scans.ts';
import { runScanner } from '../../../src/jobs/scanner.ts';
import { refuse } from '../../harness/database/outside-database.ts';
import { endpointAt, identityIn } from '../../harness/endpoints/vault-endpoints.ts';
import { eventually } from '../../harness/eventually.ts';
import { eventsOf, makeBundle, makeCertificate } from '../../harness/http/fixtures.ts';
import { addWebhook } from '../../harness/notifications/fixtures.ts';
import { freePort } from '../../harness/processes/port.ts';
import { testVault } from '../../harness/test-vault.ts';
import { serverAt } from '../../harness/tls-servers.ts';

const never = new AbortController().signal;

async function scene(t: TestContext) {
  const { vault, dataDir } = await testVault(t, { world: realWorld });
  const port = await freePort();
  const bundle = await makeBundle(vault);
  const create = (input: object, claimedUntil?: number) =>
    createScan(
      vault,
      localCli,
      parseInput(createScanInput, { ports: [port], rate: 200, ...input }),
      claimedUntil,
    );
  const found = async () =>
    (await Array.fromAsync(findFindings(vault, { limit: 1000 })))
      .flat()
      .map((row) => findingView(row).address);
  const shown = async (id: number) => scanView(await requireScan(vault, id));
  return { vault, dataDir, port, bundle, create, found, shown };
}

test('a scan finds the TLS servers of its networks and nothing else, and is then finished', async (t) => {
  const { vault, port, bundle, create, found, shown } = await scene(t);
  await serverAt(t, { host: '127.0.5.1', port }, bundle);
  await serverAt(t, { host: '127.0.5.2', port }, 'tcp');
  await serverAt(t, { host: '127.0.5.4', port }, bundle);
  const id = await create({ networks: ['127.0.5.0/30', '127.0.6.0/31'] });
  assert.equal(await nextScan(vault), id);
  assert.equal(await workOnScan(vault, id, never), true);
  assert.deepEqual(await found(), [`127.0.5.1:${port}`]);
  const { state, done, total, found: count, next_run_at } = await shown(id);
  assert.deepEqual([state, done, total, count, next_run_at], ['finished', 6, 6, 1, null]);
  assert.equal(await nextScan(vault), undefined);
  assert.equal(await workOnScan(vault, id, never), false, 'a finished scan does not run again');
});

test('a scan that was stopped is continued where it was, by one process at a time', async (t) => {
  const { vault, port, bundle, create, found, shown } = await scene(t);
  for (const host of ['127.0.7.0', '127.0.7.9']) await serverAt(t, { host, port }, bundle);
  const id = await create({ networks: ['127.0.7.0/28'] });
  const stop = new AbortController();
  await vault.db.write((writer) => writer.updateTable('scans').set({ position: 8, started_at: 1 }).execute());
  const other = vault.world.now() + claimDuration;
  await vault.db.write((writer) => writer.updateTable('scans').set({ claimed_until: other }).execute());
  assert.equal(await workOnScan(vault, id, never), false, 'another process works on it');
  assert.equal(await nextScan(vault), undefined);
  stop.abort();
  assert.equal(await workOnScan(vault, id, stop.signal, { held: other }), true);
  assert.equal((await shown(id)).done, 8, 'nothing is skipped');
  assert.equal(await nextScan(vault), id, 'the claim is given back');
  assert.equal(await workOnScan(vault, id, never), true);
  assert.deepEqual(await found(), [`127.0.7.9:${port}`], 'the first half was done before');
});

test('a server that is gone is forgotten after the next run, and a regular scan is due again', async (t) => {
  const { vault, port, bundle, create, found, shown } = await scene(t);
  await serverAt(t, { host: '127.0.8.0', port }, bundle);
  const end = await serverAt(t, { host: '127.0.8.1', port }, bundle);
  const id = await create({ networks: ['127.0.8.0/31'], interval: '1h' });
  await workOnScan(vault, id, never);
  assert.deepEqual(await found(), [`127.0.8.0:${port}`, `127.0.8.1:${port}`]);
  const { state, next_run_at, finished_at } = await shown(id);
  assert.equal(state, 'waiting');
  assert.equal(Date.parse(next_run_at ?? '') - Date.parse(finished_at ?? ''), 3_600_000);
  await end();
  await vault.db.write((writer) => writer.updateTable('scans').set({ due_at: 1 }).execute());
  await workOnScan(vault, id, never);
  assert.deepEqual(await found(), [`127.0.8.0:${port}`]);
});

test('a regular scan notifies of unknown certificates at addresses that it sees for the first time', async (t) => {
  const { vault, port, bundle, create } = await scene(t);
  await addWebhook(vault, 'http://127.0.0.1:1/');
  await makeCertificate(vault, 'web', ['www.example.test']);
  const own = await identityIn(vault, 'web');
  await serverAt(t, { host: '127.0.14.0', port }, bundle);
  await serverAt(t, { host: '127.0.14.1', port }, own.cert + own.key);
  await serverAt(t, { host: '127.0.14.2', port }, bundle);
  await endpointAt(vault, port, { address: `127.0.14.2:${port}` });
  const told = async () => {
    const rows = await vault.db.reader.selectFrom('notifications').select(['event', 'data']).execute();
    return rows.map(({ event, data }) => {
      const { count, servers } = JSON.parse(data) as { count: number; servers: { address: string }[] };
      return [event, count, ...servers.map((one) => one.address)];
    });
  };
  await workOnScan(vault, await create({ networks: ['127.0.14.0/30'] }), never);
  assert.deepEqual(await told(), [], 'the scan that runs once is looked at');
  await vault.db.write((writer) => writer.deleteFrom('scan_findings').execute());
  const id = await create({ networks: ['127.0.14.0/30'], interval: '1h' });
  const again = async () => {
    await vault.db.write((writer) =>
      writer.updateTable('scans').set({ due_at: 1 }).where('id', '=', id).execute(),
    );
    await workOnScan(vault, id, never);
  };
  await workOnScan(vault, id, never);
  await again();
  const first = ['scan.found', 1, `127.0.14.0:${port}`];
  assert.deepEqual(await told(), [first]);
  await serverAt(t, { host: '127.0.14.3', port }, bundle);
  await again();
  assert.deepEqual(await told(), [first, ['scan.found', 1, `127.0.14.3:${port}`]]);
});

test('a scan that is deleted while it runs ends, and nothing of it remains', async (t) => {
  const { vault, port, bundle, create, found } = await scene(t);
  await serverAt(t, { host: '127.0.9.1', port }, bundle);
  const id = await create({ networks: ['127.0.9.0/30'] });
  const running = workOnScan(vault, id, never);
  await eventually('the run has begun', async () => (await requireScan(vault, id)).started_at !== null);
  await deleteScan(vault, localCli, id);
  assert.equal(await running, true);
  assert.deepEqual([await found(), await listScans(vault)], [[], []]);
});

test('a scan that fails is tried again after the others', async (t) => {
  const { vault, dataDir, port, bundle, create, shown } = await scene(t);
  await serverAt(t, { host: '127.0.11.1', port }, bundle);
  const failing = await create({ networks: ['127.0.11.1'] });
  const other = await create({ networks: ['127.0.11.2'] });
  assert.equal(await nextScan(vault), failing);
  const full = refuse(dataDir, 'insert', 'scan_findings');
  await assert.rejects(workOnScan(vault, failing, never), /disk full/);
  assert.equal(await nextScan(vault), other);
  full.allow();
  await vault.db.write((writer) => writer.updateTable('scans').set({ due_at: 1 }).execute());
  assert.equal(await workOnScan(vault, failing, never), true);
  assert.equal((await shown(failing)).found, 1);
});

test('a scan of a network that the settings no longer allow ends without a connection', async (t) => {
  const { vault, dataDir, create, shown } = await scene(t);
  const id = await create({ networks: ['127.0.12.0/30'], interval: '1h' });
  assert.equal(await workOnScan({ ...vault, scannable: [] }, id, never), false);
  const { state, done, next_run_at } = await shown(id);
  assert.deepEqual([state, done, next_run_at], ['finished', 0, null]);
  assert.equal(await nextScan(vault), undefined);
  const [{ detail } = assert.fail()] = eventsOf(dataDir, 'scan.finish');
  assert.deepEqual(detail, { networks: ['127.0.12.0/30'], refused: '127.0.12.0/30' });
});

test('the scanner of the server runs what is due beside a slow scan', async (t) => {
  const { vault, port, bundle, create, found, shown } = await scene(t);
  await serverAt(t, { host: '127.0.10.1', port }, bundle);
  const slow = await create({ networks: ['127.0.16.0/20'], rate: 1 });
  await create({ networks: ['127.0.10.1'] });
  const stop = new AbortController();
  const running = runScanner(vault, stop.signal);
  await eventually('the server is found', async () => (await found()).length === 1);
  assert.equal((await shown(slow)).state, 'running');
  stop.abort();
  await running;
});

test('a scan that cannot begin is tried again at the next look', async (t) => {
  const { vault, dataDir, log, world } = await testVault(t);
  const networks = ['127.0.10.1'];
  const id = await createScan(vault, localCli, parseInput(createScanInput, { networks, ports: [1] }));
  refuse(dataDir, 'update', 'scans');
  const stop = new AbortController();
  const running = runScanner(vault, stop.signal);
  await eventually('the scanner waits', () => world.asleep === 1 && log.lines.length > 0);
  stop.abort();
  await running;
  assert.equal(log.lines.length, 1, log.lines.join());
  assert.match(log.lines.join(), /failed to scan a network; retrying/);
  assert.equal(scanView(await requireScan(vault, id)).state, 'waiting');
});

test('a vault has a maximum number of scans', async (t) => {
  const { create } = await scene(t);
  for (let count = 0; count < maxScans; count += 1) await create({ networks: ['10.0.0.1'] });
  await assert.rejects(create({ networks: ['10.0.0.1'] }), { code: 'too_many_scans' });
});
