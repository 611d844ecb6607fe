/** Purging: in short steps, of which none loses more than was asked for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { purgeCertificate, purgeExpired } from '../../../src/domain/certificates/certificate-purging.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { undeleteCertificate } from '../../../src/domain/certificates/deleted-certificates.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

/** A deleted certificate with 120 versions. */
async function deleted(vault: Vault): Promise<void> {
  await makeCertificate(vault, 'web');
  const [first] = await vault.db.reader.selectFrom('certificate_versions').selectAll().execute();
  assert(first);
  const { id: _, ...row } = first;
  await vault.db.write(async (writer) => {
    for (let version = 2; version <= 120; version += 1)
      await writer
        .insertInto('certificate_versions')
        .values({ ...row, version })
        .execute();
    await writer.updateTable('certificates').set({ current_version: 120 }).execute();
  });
  await deleteCertificate(vault, localCli, 'web', { force: false });
}

async function versionsOf(vault: Vault): Promise<number[]> {
  const rows = await vault.db.reader
    .selectFrom('certificate_versions')
    .select('version')
    .orderBy('version')
    .execute();
  return rows.map(({ version }) => version);
}

test('a purge deletes 120 versions in three transactions', async (t) => {
  const { vault } = await testVault(t);
  await deleted(vault);
  assert.equal((await versionsOf(vault)).length, 120, 'deleting touches no version');
  const write = t.mock.method(vault.db, 'write');
  await purgeCertificate(vault, localCli, { name: 'web' });
  assert.equal(write.mock.callCount(), 3);
  assert.deepEqual(await versionsOf(vault), []);
  await assert.rejects(purgeCertificate(vault, localCli, { name: 'web' }), { code: 'certificate_not_found' });
});

test('undelete after an interrupted purge restores the newest versions', async (t) => {
  const { vault } = await testVault(t);
  await deleted(vault);
  const stop = new AbortController();
  const { write } = vault.db;
  t.mock.method(vault.db, 'write', async (work: Parameters<typeof write>[0]) => {
    stop.abort();
    return write.call(vault.db, work);
  });
  assert.equal(await purgeExpired(vault, -1, stop.signal), 0);
  t.mock.restoreAll();
  assert.deepEqual((await versionsOf(vault)).length, 70);
  await undeleteCertificate(vault, localCli, { name: 'web' });
  const [row] = await vault.db.reader.selectFrom('certificates').select(['id', 'current_version']).execute();
  assert.deepEqual(row, { id: 1, current_version: 120 });
});
