/**
 * The jobs that one process runs for all: on an embedded database always here, on a shared one on one node at a time.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { minute, second as oneSecond } from '../../../src/base/duration.ts';
import { sharedJobs } from '../../../src/cli/serving/run-server.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { readiness } from '../../../src/domain/doctor/readiness.ts';
import { endServing } from '../../../src/domain/instance/served-vault.ts';
import { recordedNodes } from '../../../src/domain/nodes/nodes.ts';
import { requestRenewal, requireRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { ownNode, type SharedNode, sharedNodes } from '../../harness/database/shared-nodes.ts';
import { ofFiles } from '../../harness/database/tested-engine.ts';
import { makeCertificate, statusesOf } from '../../harness/issuance/renewal-fixtures.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { settingsFor, type TestVault, testVault } from '../../harness/test-vault.ts';

/** Starts the jobs as a server with the id `id` does, with a copy of the audit log in `auditFile`. */
function serving(
  t: TestContext,
  { vault, dataDir }: Pick<TestVault, 'vault' | 'dataDir'>,
  id: string,
  auditFile: string,
) {
  const stop = new AbortController();
  const defaults = settingsFor(dataDir);
  const settings = { ...defaults, audit: { ...defaults.audit, file: auditFile } };
  const { stdin, stdout, stderr } = process;
  const terminal = {
    world: vault.world,
    environment: {},
    stdin,
    stdout,
    stderr,
    version: '0.1.0',
    executable: '',
  };
  const jobs = sharedJobs(vault, settings, terminal, ownNode(id).settings, stop.signal);
  const end = async () => {
    stop.abort();
    await Promise.all(jobs);
  };
  t.after(end);
  return end;
}

/** Runs the clocks until the condition holds. */
async function passUntil(advance: () => void, holds: () => Promise<boolean>, what: string): Promise<void> {
  for (let step = 0; !(await holds()); step += 1) {
    assert(step < 2000, `never: ${what}`);
    advance();
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
  }
}

/** The ids of the events in the file, and of those in the log. */
async function feedOf({ db }: Vault, file: string): Promise<{ fed: number[]; recorded: number[] }> {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  const rows = await db.reader.selectFrom('audit_events').select('id').orderBy('id').execute();
  return {
    fed: lines.map((line) => (JSON.parse(line) as { id: number }).id),
    recorded: rows.map(({ id }) => id),
  };
}

const leaseOf = ({ db }: Vault) => db.reader.selectFrom('job_leases').selectAll().execute();

async function twoNodes(t: TestContext, ...skews: [number, number]) {
  const shared = await sharedNodes(t, ...skews);
  const [first, second] = shared.nodes;
  await makeCertificate(first.vault, 'web');
  const file = join(tempDir(t), 'audit.jsonl');
  const endFirst = serving(t, first, first.id, file);
  const leads =
    ({ id }: SharedNode) =>
    async () =>
      (await leaseOf(first.vault))[0]?.node_id === id;
  await passUntil(() => shared.advance(100), leads(first), 'the first node leads');
  const endSecond = serving(t, second, second.id, file);
  /** Requests a renewal at a node, and waits until one of these nodes has done it. */
  const renew = async (at: SharedNode, running: readonly SharedNode[] = shared.nodes) => {
    const { id } = await requestRenewal(at.vault, localCli, 'web');
    const isDone = async () => (await requireRenewal(first.vault, 'web', id)).status === 'succeeded';
    await passUntil(() => shared.advance(100, running), isDone, 'the renewal succeeds');
  };
  const feed = async () => {
    const isFed = async () => {
      const { fed, recorded } = await feedOf(first.vault, file);
      return fed.at(-1) === recorded.at(-1);
    };
    await passUntil(() => shared.advance(100), isFed, 'all events are in the file');
    return feedOf(first.vault, file);
  };
  return { ...shared, first, second, endFirst, endSecond, leads, renew, feed };
}

for (const skews of [
  [0, 0],
  [minute, -minute],
  [-minute, minute],
] as [number, number][]) {
  const clocks = `clocks ${skews.map((skew) => `${skew / oneSecond} s`).join(' and ')} ahead`;

  test(`a renewal requested at any node runs once, before and after a node stops (${clocks})`, async (t) => {
    const { first, second, advance, endFirst, leads, renew, feed } = await twoNodes(t, ...skews);
    await renew(first);
    await renew(second);
    await endFirst();
    await endServing(first.vault, first.id);
    await passUntil(() => advance(100), leads(second), 'the second node leads');
    await renew(first);
    assert.deepEqual(await statusesOf(first.vault), ['succeeded', 'succeeded', 'succeeded']);
    const versions = await first.vault.db.reader
      .selectFrom('certificate_versions')
      .select('version')
      .execute();
    assert.equal(versions.length, 4);
    const { fed, recorded } = await feed();
    assert.deepEqual(fed, recorded.slice(-fed.length), 'each event once, in order');
    assert.deepEqual(
      (await recordedNodes(first.vault.db.reader)).map(({ id }) => id),
      [second.id],
    );
  });

  test(`when the leader hangs, the other node renews, and each event is written at least once (${clocks})`, async (t) => {
    const { first, second, advance, leads, renew, feed } = await twoNodes(t, ...skews);
    await renew(second);
    await passUntil(() => advance(100, [second]), leads(second), 'the second node leads');
    await renew(second, [second]);
    // The clock of a machine runs on while a process hangs.
    first.world.advance(second.world.now() - skews[1] - (first.world.now() - skews[0]));
    await renew(first);
    const { fed, recorded } = await feed();
    const begun = recorded.indexOf(Math.min(...fed));
    assert.deepEqual([...new Set(fed)], recorded.slice(begun));
    assert.deepEqual(await statusesOf(first.vault), ['succeeded', 'succeeded', 'succeeded']);
    assert(await leads(second)());
  });
}

test('a node that does not lead is ready as long as another one leads', async (t) => {
  const { first, second, advance } = await twoNodes(t, 0, 0);
  let waited = 0;
  const pass = () => {
    advance(oneSecond);
    waited += oneSecond;
  };
  await passUntil(pass, async () => waited > 2 * minute, 'two minutes');
  for (const { vault } of [first, second]) {
    const isReady = async () => (await readiness(vault)).checks.renewal_engine === 'ok';
    // A server answers after the clocks have moved on.
    await passUntil(() => undefined, isReady, 'both are ready, without the clocks moving');
  }
});

test(
  'a server with an embedded database runs the jobs without a lease and without a node record',
  ofFiles('servers have nodes'),
  async (t) => {
    const opened = await testVault(t);
    const { vault, world } = opened;
    await makeCertificate(vault, 'web');
    const end = serving(t, opened, 'one', join(tempDir(t), 'audit.jsonl'));
    await requestRenewal(vault, localCli, 'web');
    await passUntil(
      () => world.advance(100),
      async () => (await statusesOf(vault)).every((status) => status === 'succeeded'),
      'the renewal succeeds',
    );
    let waited = 0;
    await passUntil(
      () => {
        world.advance(oneSecond);
        waited += oneSecond;
      },
      async () => waited > minute,
      'a minute',
    );
    assert.deepEqual(await leaseOf(vault), []);
    assert.deepEqual(await recordedNodes(vault.db.reader), []);
    // The directory of the vault goes before the hook that would end its jobs.
    await end();
  },
);
