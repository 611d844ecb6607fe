/** Renewals as they are carried out: what they make, and what they leave behind when they fail. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour, minute } from '../../../src/base/duration.ts';
import { StorageError } from '../../../src/base/storage-error.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate, deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { runRenewal } from '../../../src/domain/renewals/renewal-run.ts';
import { requestRenewal, requireRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireCertificate } from '../../../src/domain/versions/certificate-lookup.ts';
import { openVersionKey, requireVersion } from '../../../src/domain/versions/versions.ts';
import { runClaimed } from '../../../src/jobs/renewal-worker.ts';
import { refuse } from '../../harness/database/outside-database.ts';
import { testVault } from '../../harness/test-vault.ts';

const { signal: forever } = new AbortController();

async function vaultWith(t: Parameters<typeof testVault>[0], others: object = {}) {
  const opened = await testVault(t);
  const input = parseInput(createCertificateInput, { name: 'www', domains: ['www.example.com'], ...others });
  await createCertificate(opened.vault, localCli, input);
  const refuseVersions = () =>
    refuse(opened.dataDir, 'insert', 'certificate_versions', { message: 'broken' });
  return { ...opened, refuseVersions };
}

async function renew(vault: Vault): Promise<number> {
  const { id } = await requestRenewal(vault, localCli, 'www');
  const claimed = await claimRenewal(vault, 'worker');
  assert.equal(claimed?.renewal.id, id);
  await runRenewal(vault, claimed, forever);
  return id;
}

const certificateOf = ({ db }: Vault) => requireCertificate(db.reader, 'www');

async function keyOf(vault: Vault, version: number): Promise<string> {
  const row = await requireVersion(vault.db.reader, await certificateOf(vault), version);
  return openVersionKey(vault, row).expose().toString();
}

async function lastEvent({ db }: Vault) {
  const query = db.reader.selectFrom('audit_events').select(['actor', 'action', 'resource', 'detail']);
  const event = await query.orderBy('id', 'desc').limit(1).executeTakeFirstOrThrow();
  return { ...event, detail: JSON.parse(event.detail) };
}

test('a renewal makes the next version current, with a new key, and is recorded', async (t) => {
  const { vault, world } = await vaultWith(t);
  const before = await certificateOf(vault);
  world.advance(hour);
  const id = await renew(vault);
  const after = await certificateOf(vault);
  assert.equal(after.current_version, 2);
  assert.equal(after.last_attempt_at, world.now());
  assert((after.next_renewal_at ?? 0) > (before.next_renewal_at ?? 0) - 48 * hour);
  assert.notEqual(await keyOf(vault, 2), await keyOf(vault, 1));
  const renewal = await requireRenewal(vault, 'www', id);
  assert.equal(renewal.status, 'succeeded');
  assert.equal(renewal.version, 2);
  assert.equal(renewal.finished_at, world.now());
  assert.deepEqual(
    [renewal.lease_owner, renewal.lease_expires_at, renewal.sealed_private_key],
    [null, null, null],
  );
  assert.deepEqual(await lastEvent(vault), {
    actor: 'system',
    action: 'certificate.issue',
    resource: 'certificate:www',
    detail: { version: 2, renewal: id },
  });
});

test('names, key type and lifetime stay as requested', async (t) => {
  const { vault } = await vaultWith(t, { key_type: 'ec384', lifetime: '160h' });
  await renew(vault);
  const row = await requireVersion(vault.db.reader, await certificateOf(vault), 2);
  assert.equal(row.key_type, 'ec384');
  assert.equal(row.not_after - row.not_before, 160 * hour);
  assert.deepEqual(JSON.parse(row.domains), ['www.example.com']);
});

test('a certificate that keeps its key has the same key in every version', async (t) => {
  const { vault } = await vaultWith(t, { reuse_key: true });
  await renew(vault);
  await renew(vault);
  const rows = [1, 2, 3].map(async (n) => requireVersion(vault.db.reader, await certificateOf(vault), n));
  const [one, two, three] = await Promise.all(rows);
  assert.equal(await keyOf(vault, 2), await keyOf(vault, 1));
  assert.equal(await keyOf(vault, 3), await keyOf(vault, 1));
  assert.equal(two?.private_key_etag, one?.private_key_etag);
  assert.notEqual(three?.certificate_etag, two?.certificate_etag);
});

test('a failure keeps the old version current and records the error, its time and the next attempt', async (t) => {
  const { vault, world, log, refuseVersions } = await vaultWith(t);
  refuseVersions();
  world.advance(hour);
  const id = await renew(vault);
  const reason = 'Internal error; see the log of the vault.';
  const certificate = await certificateOf(vault);
  assert.equal(certificate.current_version, 1);
  assert.equal(certificate.failed_attempts, 1);
  assert.equal(certificate.last_error, reason);
  assert.equal(certificate.last_attempt_at, world.now());
  assert.equal(certificate.next_renewal_at, world.now() + minute);
  const renewal = await requireRenewal(vault, 'www', id);
  assert.deepEqual([renewal.status, renewal.error, renewal.version], ['failed', reason, null]);
  assert.deepEqual([renewal.lease_owner, renewal.sealed_private_key], [null, null]);
  assert.deepEqual(await lastEvent(vault), {
    actor: 'system',
    action: 'renewal.fail',
    resource: 'certificate:www',
    detail: { renewal: id, error: reason },
  });
  assert(log.lines.some((line) => line.includes('broken') && line.includes('renewal failed')));
});

test('a database error interrupts a renewal, which later continues with the same key and counts no failure', async (t) => {
  const { vault, world, log } = await vaultWith(t);
  const { id } = await requestRenewal(vault, localCli, 'www');
  const claimed = await claimRenewal(vault, 'worker');
  assert(claimed);
  let writes = 0;
  const write: typeof vault.db.write = async (work) => {
    writes += 1;
    if (writes === 2) throw new StorageError('connection reset');
    return vault.db.write(work);
  };
  const failing = new Proxy(vault.db, {
    get: (db, property) => (property === 'write' ? write : Reflect.get(db, property, db)),
  });
  await runClaimed({ ...vault, db: failing }, claimed, forever);
  const interrupted = await requireRenewal(vault, 'www', id);
  assert.deepEqual([interrupted.status, interrupted.error], ['running', null]);
  assert(interrupted.sealed_private_key);
  assert(log.lines.some((line) => line.includes('connection reset') && line.includes('renewal interrupted')));
  assert.equal(await claimRenewal(vault, 'worker'), undefined, 'its lease is not over');
  world.advance(minute);
  const again = await claimRenewal(vault, 'worker');
  assert.deepEqual(again?.renewal.sealed_private_key, interrupted.sealed_private_key);
  assert(again);
  await runClaimed(vault, again, forever);
  const certificate = await certificateOf(vault);
  assert.deepEqual([certificate.current_version, certificate.failed_attempts], [2, 0]);
  assert.equal((await requireRenewal(vault, 'www', id)).status, 'succeeded');
});

test('failures are retried after 1, 10, 100 minutes, then daily, and a success resets the count', async (t) => {
  const { vault, world, refuseVersions } = await vaultWith(t);
  const refused = refuseVersions();
  for (const wait of [1, 10, 100, 24 * 60, 24 * 60]) {
    await renew(vault);
    assert.equal((await certificateOf(vault)).next_renewal_at, world.now() + wait * minute);
    world.advance(wait * minute);
  }
  assert.equal((await certificateOf(vault)).failed_attempts, 5);
  refused.allow();
  await renew(vault);
  const { current_version, failed_attempts, last_error } = await certificateOf(vault);
  assert.deepEqual([current_version, failed_attempts, last_error], [2, 0, null]);
});

test('a certificate that was deleted before its renewal ran leaves nothing behind', async (t) => {
  const { vault } = await vaultWith(t);
  await requestRenewal(vault, localCli, 'www');
  const claimed = await claimRenewal(vault, 'worker');
  assert(claimed);
  await deleteCertificate(vault, localCli, 'www', { force: false });
  await runRenewal(vault, claimed, forever);
  assert.equal((await lastEvent(vault)).action, 'certificate.delete');
});

test('a certificate that is deleted while its renewal runs leaves nothing behind', async (t) => {
  const { vault } = await vaultWith(t);
  await requestRenewal(vault, localCli, 'www');
  const claimed = await claimRenewal(vault, 'worker');
  assert(claimed);
  const versions = await vault.db.reader.selectFrom('certificate_versions').select('version').execute();
  const running = runRenewal(vault, claimed, forever);
  await deleteCertificate(vault, localCli, 'www', { force: false });
  await running;
  const { reader } = vault.db;
  assert.deepEqual(await reader.selectFrom('certificate_versions').select('version').execute(), versions);
  assert.deepEqual(await reader.selectFrom('renewals').select('id').execute(), []);
  assert.equal((await lastEvent(vault)).action, 'certificate.delete');
});

test('a database that cannot be written makes the run stop, and the renewal stays open', async (t) => {
  const { vault } = await vaultWith(t);
  const { id } = await requestRenewal(vault, localCli, 'www');
  const claimed = await claimRenewal(vault, 'worker');
  assert(claimed);
  t.mock.method(vault.db, 'write', () => Promise.reject(new Error('disk full')));
  await assert.rejects(runRenewal(vault, claimed, forever), /disk full/);
  assert.equal((await requireRenewal(vault, 'www', id)).status, 'running');
});
