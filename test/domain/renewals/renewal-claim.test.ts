/** Renewals whose workers die or are cut off: the next one resumes with the same key, and there is one new version. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour, second } from '../../../src/base/duration.ts';
import { StorageError } from '../../../src/base/storage-error.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { updateAcmeIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import type { ClaimedRenewal } from '../../../src/domain/renewals/attempt.ts';
import {
  type ClaimLimits,
  claimRenewal,
  keepLease,
  leaseDuration,
  releaseRenewal,
} from '../../../src/domain/renewals/renewal-claim.ts';
import { runRenewal } from '../../../src/domain/renewals/renewal-run.ts';
import { requestRenewal, requireRenewal } from '../../../src/domain/renewals/renewals.ts';
import { openFor, renewalKeyOwner } from '../../../src/domain/sealed-secrets.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireCertificate } from '../../../src/domain/versions/certificate-lookup.ts';
import { openVersionKey, requireVersion } from '../../../src/domain/versions/versions.ts';
import { makeCertificate, silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { race, sourceUrl } from '../../harness/processes/racing-processes.ts';
import { settingsFor, testVault } from '../../harness/test-vault.ts';

const { signal: forever } = new AbortController();

async function vaultWithRenewals(t: Parameters<typeof testVault>[0], count = 1) {
  const opened = await testVault(t);
  for (let n = 1; n <= count; n += 1) {
    const input = parseInput(createCertificateInput, { name: `www${n}`, domains: ['www.example.com'] });
    await createCertificate(opened.vault, localCli, input);
    await requestRenewal(opened.vault, localCli, `www${n}`);
  }
  return opened;
}

async function claim(vault: Vault, worker: string): Promise<ClaimedRenewal> {
  const claimed = await claimRenewal(vault, worker);
  assert(claimed, 'nothing to claim');
  return claimed;
}

const versionsOf = async ({ db }: Vault) =>
  (await db.reader.selectFrom('certificate_versions').select('version').orderBy('id').execute()).map(
    ({ version }) => version,
  );

/**
 * Runs a renewal up to the moment before its second write, in which the version would be stored. Without
 * `goOn` it stays there for ever, like a process that died; with it, it had only been stopped for a while.
 */
async function runUntilKeyIsStored(vault: Vault, claimed: ClaimedRenewal) {
  const reached = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  let writes = 0;
  const cutOff: Vault = { ...vault, db: Object.create(vault.db) };
  Object.defineProperties(cutOff.db, {
    reader: { value: vault.db.reader },
    write: {
      value: async (work: Parameters<Vault['db']['write']>[0]) => {
        writes += 1;
        if (writes > 1) {
          reached.resolve();
          await stopped.promise;
        }
        return vault.db.write(work);
      },
    },
  });
  const running = runRenewal(cutOff, claimed, forever);
  await reached.promise;
  return {
    goOn: async () => {
      stopped.resolve();
      await running;
    },
  };
}

test('renewals are claimed in the order of their requests, each by one worker', async (t) => {
  const { vault } = await vaultWithRenewals(t, 3);
  const ids: number[] = [];
  const claimNext = async (worker: string) => {
    const claimed = await claimRenewal(vault, worker);
    if (claimed !== undefined) ids.push(claimed.renewal.id);
  };
  await Promise.all(['x', 'y', 'z', 'late'].map(claimNext));
  assert.deepEqual(ids, [1, 2, 3]);
});

test('no other worker gets a claimed renewal before its lease has expired', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  const { renewal } = await claim(vault, 'first');
  world.advance(leaseDuration - 1);
  assert.equal(await claimRenewal(vault, 'second'), undefined);
  world.advance(1);
  const again = await claim(vault, 'second');
  assert.equal(again.renewal.id, renewal.id);
  assert.equal(again.renewal.claims, 2);
  assert.equal(again.renewal.started_at, renewal.started_at);
});

test('after a crash the next worker resumes with the stored key, and issues one version', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  const first = await claim(vault, 'first');
  await runUntilKeyIsStored(vault, first);
  const stored = (await requireRenewal(vault, 'www1', first.renewal.id)).sealed_private_key;
  assert(stored);
  const key = encodePem('PRIVATE KEY', openFor(vault, renewalKeyOwner(first.renewal.id), stored).expose());
  world.advance(leaseDuration);
  await runRenewal(vault, await claim(vault, 'second'), forever);
  assert.deepEqual(await versionsOf(vault), [1, 2]);
  const certificate = await requireCertificate(vault.db.reader, 'www1');
  const version = await requireVersion(vault.db.reader, certificate, 2);
  assert.equal(openVersionKey(vault, version).expose().toString(), key);
});

test('a worker that lost its lease issues no second version when it continues', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  const first = await claim(vault, 'first');
  const { goOn } = await runUntilKeyIsStored(vault, first);
  world.advance(leaseDuration);
  await runRenewal(vault, await claim(vault, 'second'), forever);
  await goOn();
  assert.deepEqual(await versionsOf(vault), [1, 2]);
  assert.equal((await requireRenewal(vault, 'www1', first.renewal.id)).status, 'succeeded');
});

test('a worker that lost its lease does not change the renewal of the new owner', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  const first = await claim(vault, 'first');
  const { goOn } = await runUntilKeyIsStored(vault, first);
  world.advance(leaseDuration);
  const second = await claim(vault, 'second');
  await goOn();
  assert.deepEqual(await versionsOf(vault), [1]);
  const renewal = await requireRenewal(vault, 'www1', first.renewal.id);
  assert.deepEqual([renewal.status, renewal.lease_owner], ['running', second.owner]);
  await runRenewal(vault, second, forever);
  assert.deepEqual(await versionsOf(vault), [1, 2]);
});

test('a worker that reclaims a renewal after lease expiry is a new owner; its previous attempt stores nothing', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  const first = await claim(vault, 'worker');
  const { goOn } = await runUntilKeyIsStored(vault, first);
  world.advance(leaseDuration);
  const second = await claim(vault, 'worker');
  await goOn();
  assert.deepEqual(await versionsOf(vault), [1]);
  await runRenewal(vault, second, forever);
  assert.deepEqual(await versionsOf(vault), [1, 2]);
});

test('a renewal that was interrupted five times fails as abandoned', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  for (let n = 0; n < 5; n += 1) {
    await claim(vault, 'dying');
    world.advance(leaseDuration);
  }
  const last = await claim(vault, 'survivor');
  await runRenewal(vault, last, forever);
  const renewal = await requireRenewal(vault, 'www1', last.renewal.id);
  assert.deepEqual(
    [renewal.status, renewal.error],
    ['failed', 'Renewal abandoned: its worker stopped unexpectedly 5 times.'],
  );
  assert.equal((await requireCertificate(vault.db.reader, 'www1')).failed_attempts, 1);
  assert.deepEqual(await versionsOf(vault), [1]);
});

test('a lease is kept fresh while the work continues, and no longer', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  const claimed = await claim(vault, 'first');
  const done = new AbortController();
  const keeping = keepLease(vault, claimed, done.signal);
  for (let n = 0; n < 10; n += 1) {
    await world.sleeping(1);
    world.advance(20 * second);
    await world.turn();
    assert.equal(await claimRenewal(vault, 'second'), undefined);
  }
  // It sleeps again once the database has the new end.
  await world.sleeping(1);
  const { lease_expires_at } = await requireRenewal(vault, 'www1', claimed.renewal.id);
  assert.equal(lease_expires_at, world.now() + leaseDuration);
  done.abort();
  assert.equal(await keeping, false);
  world.advance(leaseDuration);
  assert(await claimRenewal(vault, 'second'));
});

test('keepLease retries failed writes until the lease expires, and only then reports it lost', async (t) => {
  const { vault, world, log } = await vaultWithRenewals(t);
  const claimed = await claim(vault, 'first');
  const begun = world.now();
  let fails = true;
  const original = vault.db.write.bind(vault.db);
  t.mock.method(vault.db, 'write', async (work: Parameters<typeof original>[0]) => {
    if (fails) throw new StorageError('the database is locked by another process');
    return original(work);
  });
  let lost: boolean | undefined;
  void keepLease(vault, claimed, new AbortController().signal).then((value) => {
    lost = value;
  });
  const passesUntil = async (holds: () => boolean | Promise<boolean>) => {
    for (let turns = 0; !(await holds()); turns += 1) {
      if (world.asleep === 1) world.advance(second);
      await world.turn();
      assert(turns < 100_000);
    }
  };
  const leaseEnd = async () =>
    (await requireRenewal(vault, 'www1', claimed.renewal.id)).lease_expires_at ?? 0;
  const failures = () => log.lines.filter((line) => line.includes('failed to refresh the lease')).length;
  await passesUntil(() => failures() === 3);
  fails = false;
  await passesUntil(async () => (await leaseEnd()) > begun + leaseDuration);
  assert(world.now() - begun < leaseDuration);
  const end = await leaseEnd();
  fails = true;
  await passesUntil(() => lost !== undefined);
  assert.equal(lost, true);
  assert(world.now() >= end && world.now() <= end + 2 * second);
  assert(failures() > 20);
});

test('keepLease ends without writing when another worker has the lease', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  const claimed = await claim(vault, 'first');
  const keeping = keepLease(vault, claimed, new AbortController().signal);
  await world.sleeping(1);
  const other = { lease_owner: 'second', lease_expires_at: 1 };
  await vault.db.write((writer) => writer.updateTable('renewals').set(other).execute());
  world.advance(20 * second);
  assert.equal(await keeping, true);
  const renewal = await requireRenewal(vault, 'www1', claimed.renewal.id);
  assert.deepEqual([renewal.lease_owner, renewal.lease_expires_at], ['second', 1]);
});

test('a released renewal is queued again, and its claims are not counted', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  for (let n = 0; n < 10; n += 1) {
    const claimed = await claim(vault, 'stopping');
    assert.equal(claimed.renewal.claims, 1);
    await releaseRenewal(vault, claimed);
  }
  const renewal = await requireRenewal(vault, 'www1', 1);
  assert.deepEqual([renewal.status, renewal.claims], ['queued', 0]);
  assert.deepEqual([renewal.lease_owner, renewal.lease_expires_at], [null, null]);
  world.advance(1);
  await runRenewal(vault, await claim(vault, 'next'), forever);
  assert.deepEqual(await versionsOf(vault), [1, 2]);
});

test('a worker that lost its lease cannot release the renewal of the new owner', async (t) => {
  const { vault, world } = await vaultWithRenewals(t);
  const first = await claim(vault, 'first');
  world.advance(leaseDuration);
  const second = await claim(vault, 'second');
  await releaseRenewal(vault, first);
  const renewal = await requireRenewal(vault, 'www1', 1);
  assert.deepEqual([renewal.status, renewal.lease_owner, renewal.claims], ['running', second.owner, 2]);
});

/** Room for every issuer but these. */
const except = (...full: readonly number[]): ClaimLimits => ({
  admits: ({ issuer_id }) => !full.includes(issuer_id ?? 0),
});

/** Three renewals at each of two ACME issuers, queued in turns, and one at the private CA. */
async function twoIssuers(t: Parameters<typeof testVault>[0]) {
  const opened = await testVault(t);
  const { vault } = opened;
  const issuers = [await silentIssuer(vault, 'one'), await silentIssuer(vault, 'other')] as const;
  for (let n = 1; n <= 3; n += 1) {
    for (const issuer of ['one', 'other']) await makeCertificate(vault, `${issuer}${n}`, { issuer });
  }
  await makeCertificate(vault, 'own');
  await requestRenewal(vault, localCli, 'own');
  const ids = async (limits?: ClaimLimits) => {
    const claimed = [];
    for (
      let next = await claimRenewal(vault, 'x', limits);
      next;
      next = await claimRenewal(vault, 'x', limits)
    ) {
      claimed.push(next.renewal.id);
    }
    return claimed;
  };
  return { ...opened, issuers, ids };
}

test('an issuer that is paused is skipped until its pause ends, and delays no other issuer', async (t) => {
  const { vault, world, issuers, ids } = await twoIssuers(t);
  const paused_until = world.now() + hour;
  await vault.db.write((writer) => updateAcmeIssuer(writer, issuers[0], { paused_until }));
  assert.deepEqual(await ids(), [2, 4, 6, 7]);
  await vault.db.write((writer) => writer.updateTable('renewals').set({ lease_expires_at: null }).execute());
  world.advance(hour - 1);
  assert.deepEqual(await ids(), []);
  world.advance(1);
  assert.deepEqual(await ids(), [1, 3, 5]);
});

test('renewals of issuers at their limit are skipped', async (t) => {
  const { issuers, ids } = await twoIssuers(t);
  assert.deepEqual(await ids(except(...issuers)), [7]);
  assert.deepEqual(await ids(except(issuers[1])), [1, 3, 5]);
  assert.deepEqual(await ids(except()), [2, 4, 6]);
});

test('a renewal whose issuer was removed is claimed even when all issuers are at their limit', async (t) => {
  const { vault, issuers, ids } = await twoIssuers(t);
  await vault.db.write((writer) =>
    writer.updateTable('renewals').set({ issuer_id: null }).where('id', '=', 1).execute(),
  );
  assert.deepEqual(await ids(except(...issuers)), [1, 7]);
});

test('claimRenewal with only claims that renewal unless it is claimed, paused or over the limit', async (t) => {
  const { vault, world, issuers, ids } = await twoIssuers(t);
  assert.deepEqual(await ids({ only: 4 }), [4]);
  assert.deepEqual(await ids({ only: 4 }), []);
  assert.deepEqual(await ids({ only: 99 }), []);
  world.advance(leaseDuration);
  const paused_until = world.now() + hour;
  await vault.db.write((writer) => updateAcmeIssuer(writer, issuers[1], { paused_until }));
  assert.deepEqual(await ids({ only: 4 }), []);
  assert.deepEqual(await ids({ only: 5, ...except(issuers[0]) }), []);
});

test('processes that claim from one database at the same moment never get the same renewal', async (t) => {
  const count = 40;
  const { vault, dataDir, close } = await testVault(t);
  await silentIssuer(vault, 'ca');
  for (let n = 1; n <= count; n += 1) await makeCertificate(vault, `www${n}`, { issuer: 'ca' });
  await close();
  const script = `
    const { openVault } = await import(${JSON.stringify(sourceUrl('cli/runtime/open-vault.ts'))});
    const { realWorld } = await import(${JSON.stringify(sourceUrl('base/world.ts'))});
    const { claimRenewal } = await import(${JSON.stringify(sourceUrl('domain/renewals/renewal-claim.ts'))});
    const { vault, close } = await openVault(JSON.parse(process.argv[1]), realWorld, 'refuse');
    await start();
    for (;;) {
      const claimed = await claimRenewal(vault, String(process.pid));
      if (claimed === undefined) break;
      process.stdout.write(claimed.renewal.id + ' ' + claimed.renewal.claims + '\\n');
    }
    await close();
  `;
  const said = await race(t, 4, script, [JSON.stringify(settingsFor(dataDir))]);
  const claims = said.flatMap((all) => all.trim().split('\n')).filter((line) => line !== '');
  const expected = Array.from({ length: count }, (_, index) => `${index + 1} 1`);
  assert.deepEqual(claims.toSorted(), expected.toSorted());
  assert(said.filter((all) => all !== '').length > 1, 'one process was faster than all others');
});
