/**
 * The idle cost of the scheduler: processor time per minute of vault time, with many certificates and none due.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { day, minute } from '../src/base/duration.ts';
import type { Identifier } from '../src/base/identifier.ts';
import { toJson } from '../src/base/json.ts';
import { openVault } from '../src/cli/runtime/open-vault.ts';
import { insertVersion } from '../src/db/tables/certificates/certificate-versions.ts';
import { insertCertificate } from '../src/db/tables/certificates/certificates.ts';
import { findIssuer } from '../src/db/tables/issuance/issuers.ts';
import type { Vault } from '../src/domain/vault.ts';
import { runNotificationWatcher } from '../src/jobs/notification-watcher.ts';
import { runWindowWatcher } from '../src/jobs/periodic-jobs.ts';
import { runRenewalScheduler } from '../src/jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../src/jobs/renewal-worker.ts';
import { settingsFor } from '../test/harness/test-vault.ts';
import { TestWorld } from '../test/harness/test-world.ts';
import { type Figure, median } from './figure.ts';
import type { Pace } from './pace.ts';

const rounds = 10;
const minutesPerRound = 60;

type Job = (vault: Vault, signal: AbortSignal) => Promise<void>;

/** Measures the source, because the executable's clock cannot be set; medians of ten rounds of one hour each. */
export async function measureScheduler(_: string, { isQuick }: Pace): Promise<Figure[]> {
  const certificates = isQuick ? 10_000 : 100_000;
  const many = certificates.toLocaleString('en');
  const data = mkdtempSync(join(tmpdir(), 'vault-bench-'));
  const world = new TestWorld();
  const { vault, close } = await openVault(settingsFor(data), world, 'create');
  try {
    await fill(vault, world, certificates);
    const watcher: Job = (of, signal) => runNotificationWatcher(of, undefined, signal);
    const all = [runRenewalScheduler, runRenewalWorker, runWindowWatcher, watcher];
    return [
      { name: `planning ${many} at the start`, value: await firstRound(vault, world), unit: 'ms' },
      { name: 'second pass over them', value: await firstRound(vault, world), unit: 'ms' },
      {
        name: 'scheduler, per minute',
        value: await perMinute(vault, world, [runRenewalScheduler]),
        unit: 'ms',
        goal: 50,
      },
      {
        name: 'with worker, ARI and expiry checks, per minute',
        value: await perMinute(vault, world, all),
        unit: 'ms',
        goal: 50,
      },
    ];
  } finally {
    await close();
    rmSync(data, { recursive: true });
  }
}

/** Processor time until the scheduler has scheduled everything and sleeps. */
async function firstRound(vault: Vault, world: TestWorld): Promise<number> {
  const before = process.cpuUsage();
  const stop = start(vault, [runRenewalScheduler]);
  await world.sleeping(1);
  const used = milliseconds(process.cpuUsage(before));
  await stop();
  return used;
}

async function perMinute(vault: Vault, world: TestWorld, jobs: readonly Job[]): Promise<number> {
  const stop = start(vault, jobs);
  await world.sleeping(jobs.length);
  const values: number[] = [];
  // The first round does not count, because the engine is still compiling the code.
  for (let round = 0; round <= rounds; round += 1) {
    const before = process.cpuUsage();
    for (let seconds = 0; seconds < minutesPerRound * 60; seconds += 1) {
      world.advance(1000);
      await world.turn();
      await world.sleeping(jobs.length);
    }
    if (round > 0) values.push(milliseconds(process.cpuUsage(before)) / minutesPerRound);
  }
  await stop();
  const queued = await vault.db.reader.selectFrom('renewals').select('id').execute();
  if (queued.length > 0) throw new Error(`${queued.length} renewals were due`);
  return median(values);
}

function start(vault: Vault, jobs: readonly Job[]): () => Promise<void> {
  const abort = new AbortController();
  const running = jobs.map((job) => job(vault, abort.signal));
  return async () => {
    abort.abort();
    await Promise.all(running);
  };
}

function milliseconds({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000;
}

/** Certificates valid for 90 days, issued over the last fifty, whose renewal windows are polled in a few days. */
async function fill(vault: Vault, world: TestWorld, certificates: number): Promise<void> {
  const issuer = await findIssuer(vault.db.reader, 'local-ca');
  const pem = 'x'.repeat(1800);
  const etag = 'x'.repeat(26);
  const etags = { certificate_etag: etag, chain_etag: etag, fullchain_etag: etag, private_key_etag: etag };
  await vault.db.write(async (writer) => {
    for (let n = 0; n < certificates; n += 1) {
      const issued = world.now() - (50 * day * n) / certificates;
      const name = `www${n}.example.com`;
      const shared = { domains: toJson([name as Identifier]), key_type: 'ec256', created_at: issued };
      const certificate_id = await insertCertificate(writer, {
        ...{ name, ...shared, issuer_id: issuer?.id ?? null, auto_renew: 1, reuse_key: 0 },
        ...{ current_version: 1, next_renewal_at: null, ari_check_at: world.now() + 3 * day },
      });
      await insertVersion(writer, {
        ...{ certificate_id, version: 1, ...shared, source: 'acme', ...etags },
        ...{ serial: n.toString(16).padStart(32, '0'), issuer: 'CN=CA', subject: `CN=${name}` },
        ...{ fingerprint_sha256: 'x'.repeat(95), not_before: issued, not_after: issued + 90 * day },
        ...{ certificate_pem: pem, chain_pem: pem, sealed_private_key: Buffer.alloc(300) },
      });
    }
  });
  world.advance(minute);
}
