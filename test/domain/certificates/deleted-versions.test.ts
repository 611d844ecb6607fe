/** Certificates that a vault before schema 22 deleted: their keys were sealed for another table. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toJson } from '../../../src/base/json.ts';
import { generatePrivateKey } from '../../../src/crypto/key-pair.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { undeleteCertificate } from '../../../src/domain/certificates/deleted-certificates.ts';
import { deletedKeyOwner, nextKeyOwner, openFor, sealFor } from '../../../src/domain/sealed-secrets.ts';
import { scheduleNextKey } from '../../../src/domain/versions/next-key.ts';
import { openVersionKey } from '../../../src/domain/versions/versions.ts';
import { makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

test('undelete restores the versions and the next key of a certificate that an older vault deleted', async (t) => {
  const { vault } = await testVault(t);
  await makeCertificate(vault, 'web');
  await vault.db.write(async (writer) =>
    scheduleNextKey(vault, writer, 1, await generatePrivateKey('ec256')),
  );
  const [version] = await vault.db.reader.selectFrom('certificate_versions').selectAll().execute();
  const [next] = await vault.db.reader.selectFrom('next_keys').selectAll().execute();
  assert(version && next);
  const key = openVersionKey(vault, version);
  const nextKey = openFor(vault, nextKeyOwner(1), next.sealed_private_key);
  await deleteCertificate(vault, localCli, 'web', { force: false });
  // As older vaults left it.
  await vault.db.write(async (writer) => {
    await writer.updateTable('deleted_certificates').set({ certificate_id: null }).execute();
    await writer.deleteFrom('certificate_versions').execute();
    await writer.deleteFrom('next_keys').execute();
    const { id: _, certificate_id: __, version: number, sealed_private_key: ___, ...facts } = version;
    const { certificate_id: ____, sealed_private_key: _____, ...announced } = next;
    const move = async (at: number, content: object, secret: typeof key) =>
      writer
        .insertInto('deleted_versions')
        .values({
          deleted_certificate_id: 1,
          version: at,
          facts: toJson(content),
          sealed_private_key: await sealFor(vault, writer, deletedKeyOwner(1, at), secret),
        })
        .execute();
    await move(number, facts, key);
    await move(0, announced, nextKey);
  });
  await undeleteCertificate(vault, localCli, { name: 'web' });
  const [restored] = await vault.db.reader.selectFrom('certificate_versions').selectAll().execute();
  const [restoredNext] = await vault.db.reader.selectFrom('next_keys').selectAll().execute();
  assert(restored && restoredNext);
  assert.equal(restored.certificate_id, 2);
  assert.deepEqual(openVersionKey(vault, restored).expose(), key.expose());
  assert.deepEqual(
    openFor(vault, nextKeyOwner(2), restoredNext.sealed_private_key).expose(),
    nextKey.expose(),
  );
  const left = await vault.db.reader.selectFrom('deleted_versions').select('id').execute();
  assert.deepEqual(left, []);
});
