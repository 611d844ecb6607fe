/**
 * A new master key takes the old one's place: nothing is lost, nothing is sealed by the old one afterwards, whoever
 * runs beside.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { Secret } from '../../../src/base/secret.ts';
import { MasterKey } from '../../../src/crypto/secrets/master-key.ts';
import { readMasterKey } from '../../../src/crypto/secrets/master-key-file.ts';
import { listMasterKeys } from '../../../src/db/tables/master-keys.ts';
import { countSealedBlobs, sealedPlaces } from '../../../src/db/tables/sealed-blobs.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { readBackup } from '../../../src/domain/backup/backup-file.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { masterKeyFindings } from '../../../src/domain/doctor/upkeep-findings.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import { type RotationOrder, rotateMasterKey } from '../../../src/domain/master-key/master-key-rotation.ts';
import { masterKeyStatus, removeMasterKey } from '../../../src/domain/master-key/master-key-status.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { makeBackup } from '../../harness/database/backup-fixtures.ts';
import { openEverything, sealEverything } from '../../harness/database/sealed-everything.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

const order: RotationOrder = { actor: localCli, report: () => undefined };
const someKey = (fill: number) => new MasterKey(new Secret(Buffer.alloc(32, fill)));
const create = (name: string) => parseInput(createCertificateInput, { name, domains: ['b.test'] });

/** Stops a rotation in its middle, as a kill would: some blobs are of the new key, some of the old. */
const cutOff: RotationOrder = {
  actor: localCli,
  report: (step, blobs) => {
    if (step === 'sealed' && blobs > 1) throw new Error('cut off');
  },
};

async function filled(t: Parameters<typeof testVault>[0]) {
  const opened = await testVault(t);
  await sealEverything(opened.vault);
  return { ...opened, before: await openEverything(opened.vault) };
}

async function damageProvider({ db }: Vault): Promise<void> {
  await db.write(async (writer) => {
    const { sealed_secret } = await writer
      .selectFrom('dns_providers')
      .select('sealed_secret')
      .executeTakeFirstOrThrow();
    sealed_secret.writeUInt8(sealed_secret.readUInt8(40) ^ 1, 40);
    await writer.updateTable('dns_providers').set({ sealed_secret }).execute();
  });
}

test('after a rotation all secrets open and are sealed only with the new key', async (t) => {
  const { vault, dataDir, before } = await filled(t);
  const [old = ''] = before.keys;
  const { from, to, blobs, files, damaged } = await rotateMasterKey(vault, order);
  assert.deepEqual([from, files, damaged], [[old], 'settled', []]);
  assert.notEqual(to, old);
  const after = await openEverything(vault);
  assert.deepEqual(after.secrets, before.secrets);
  assert.deepEqual(after.keys, [to]);
  assert.equal(blobs, before.secrets.length);
  assert.equal(readMasterKey(join(dataDir, 'master.key'))?.name, to);
  assert.equal(readMasterKey(join(dataDir, `master.key.${old}`))?.name, old);
  assert.equal(existsSync(join(dataDir, 'master.key.next')), false);
});

test('the begin and end of a rotation are audit events with key ids and counts only', async (t) => {
  const { vault, before } = await filled(t);
  const { to, blobs } = await rotateMasterKey(vault, order);
  const events = await vault.db.reader
    .selectFrom('audit_events')
    .select(['actor', 'action', 'resource', 'detail'])
    .where('action', 'like', 'master_key.%')
    .orderBy('id')
    .execute();
  const [old] = before.keys;
  assert.deepEqual(
    events.map(({ detail, ...event }) => ({ ...event, detail: JSON.parse(detail) })),
    [
      {
        actor: 'local-cli',
        action: 'master_key.begin',
        resource: `master-key:${to}`,
        detail: { from: old, to },
      },
      {
        actor: 'local-cli',
        action: 'master_key.rotate',
        resource: `master-key:${to}`,
        detail: { from: [old], to, blobs, damaged: 0 },
      },
    ],
  );
});

test('sealedPlaces lists every column with the prefix sealed_', async (t) => {
  const { vault } = await testVault(t);
  const tables = await vault.db.reader.introspection.getTables();
  const columns = tables.flatMap(({ name, columns }) =>
    columns.filter((column) => column.name.startsWith('sealed_')).map((column) => `${name}.${column.name}`),
  );
  assert.deepEqual(columns.sort(), Object.keys(sealedPlaces).sort());
});

test('a process with the old key seals with the new key after a rotation in another process', async (t) => {
  const { vault: rotating, dataDir, world } = await filled(t);
  const { vault: other } = await testVault(t, { dataDir, world });
  const before = other.keyring.current.name;
  const { to } = await rotateMasterKey(rotating, order);
  assert.equal(other.keyring.current.name, before, 'nobody has told it');
  await createCertificate(other, localCli, create('later'));
  assert.equal(other.keyring.current.name, to);
  assert.deepEqual((await openEverything(other)).keys, [to]);
  assert.deepEqual(
    (await openEverything(rotating)).secrets.length,
    (await openEverything(other)).secrets.length,
  );
});

test('a process reads secrets of both keys during a rotation, and a certificate created meanwhile stays readable', async (t) => {
  const { vault, dataDir, world, before } = await filled(t);
  const { vault: other } = await testVault(t, { dataDir, world });
  await assert.rejects(rotateMasterKey(vault, cutOff), /cut off/);
  const mixed = await openEverything(other);
  assert.deepEqual(mixed.secrets, before.secrets);
  assert.equal(mixed.keys.length, 2);
  await createCertificate(other, localCli, create('between'));
  const { to, from } = await rotateMasterKey(vault, order);
  assert.deepEqual(from, before.keys);
  assert.deepEqual((await openEverything(other)).keys, [to]);
});

test('an interrupted rotation is resumed with the same key by another process, which generates no third one', async (t) => {
  const { vault, dataDir, world, before, close } = await filled(t);
  await assert.rejects(rotateMasterKey(vault, cutOff), /cut off/);
  await close();
  const { vault: next, log } = await testVault(t, { dataDir, world });
  assert.match(log.lines.join('\n'), /"level":"warn","message":"master key rotation is not finished/);
  assert.equal((await masterKeyFindings(next))[0]?.status, 'warning');
  const steps: string[] = [];
  await rotateMasterKey(next, { ...order, report: (step) => steps.push(step) });
  assert.equal(steps[0], 'resumed');
  assert.deepEqual((await listMasterKeys(next.db.reader)).map(({ state }) => state).sort(), [
    'current',
    'retired',
  ]);
  assert.deepEqual((await openEverything(next)).secrets, before.secrets);
  assert.deepEqual(readdirSync(dataDir).filter((name) => name.startsWith('master.key')).length, 2);
});

test('a given key is used, and one that differs from master.key.next is rejected', async (t) => {
  const { vault, dataDir } = await filled(t);
  const { to } = await rotateMasterKey(vault, { ...order, newKey: someKey(7) });
  assert.equal(to, someKey(7).name);
  writeFileSync(join(dataDir, 'master.key.next'), Buffer.alloc(32, 8), { mode: 0o600 });
  await assert.rejects(
    rotateMasterKey(vault, { ...order, newKey: someKey(9) }),
    /master\.key\.next already holds another key/,
  );
  assert.deepEqual((await openEverything(vault)).keys, [to]);
  assert.equal((await rotateMasterKey(vault, order)).to, someKey(8).name, 'the one that waits is next');
});

test('a rotation fails without changes when master.key.next cannot be written', async (t) => {
  const { vault, dataDir, before } = await filled(t);
  const missing = join(dataDir, 'gone');
  Object.defineProperty(vault.keyring, 'path', { value: join(missing, 'master.key') });
  await assert.rejects(rotateMasterKey(vault, order), (error) => {
    assert(error instanceof OperatorError);
    assert.match(
      error.message,
      /cannot write the next master key beside the current one: no such file or directory$/,
    );
    assert.match(error.hint ?? '', /master\.key\.next/);
    return true;
  });
  assert.deepEqual(await openEverything(vault), before);
});

test('a damaged blob is reported and skipped, and all others are resealed', async (t) => {
  const { vault, before } = await filled(t);
  await damageProvider(vault);
  const { damaged, blobs } = await rotateMasterKey(vault, order);
  assert.deepEqual(damaged, ['dns_providers 1']);
  assert.equal(blobs, before.secrets.length - 1);
  const left = (await countSealedBlobs(vault.db.reader)).filter(({ key }) => key === before.keys[0]);
  assert.deepEqual(left, [{ place: 'dns_providers.sealed_secret', key: before.keys[0], blobs: 1 }]);
});

test('earlier damage does not keep a later rotation from finishing, even if the key is lost', async (t) => {
  const { vault, dataDir, world, before, close } = await filled(t);
  await damageProvider(vault);
  await rotateMasterKey(vault, order);
  await close();
  rmSync(join(dataDir, `master.key.${before.keys[0]}`));
  const { vault: next } = await testVault(t, { dataDir, world });
  const { from, damaged } = await rotateMasterKey(next, order);
  assert.deepEqual([from.length, damaged], [1, ['dns_providers 1']]);
  await makeBackup(next, join(tempDir(t), 'after.backup'));
});

test('a rotation yields to the event loop at least once per sealed column', async (t) => {
  const { vault } = await filled(t);
  let turns = 0;
  let isRotating = true;
  const others = (async () => {
    while (isRotating) {
      await vault.world.turn();
      turns += 1;
    }
  })();
  await rotateMasterKey(vault, order);
  isRotating = false;
  await others;
  assert(turns >= Object.keys(sealedPlaces).length, `${turns} turns`);
});

test('a vault with an unfinished rotation does not open without the previous key, and the error contains its id', async (t) => {
  const { vault, dataDir, world, before, close } = await filled(t);
  await assert.rejects(rotateMasterKey(vault, cutOff), /cut off/);
  await close();
  const path = join(dataDir, `master.key.${before.keys[0]}`);
  const bytes = readFileSync(path);
  rmSync(path);
  await assert.rejects(testVault(t, { dataDir, world }), (error) => {
    assert(error instanceof OperatorError);
    assert.match(
      error.message,
      new RegExp(`is not finished, and master key ${before.keys[0]} is missing beside`),
    );
    return true;
  });
  writeFileSync(path, bytes, { mode: 0o600 });
  const { vault: again } = await testVault(t, { dataDir, world });
  assert.deepEqual((await openEverything(again)).secrets, before.secrets);
});

test('a backup during a rotation needs only the new key', async (t) => {
  const { vault, dataDir, world, before } = await filled(t);
  await assert.rejects(rotateMasterKey(vault, cutOff), /cut off/);
  const file = join(tempDir(t), 'middle.backup');
  await makeBackup(vault, file);
  const { manifest } = await readBackup(file);
  const { name } = vault.keyring.current;
  assert.deepEqual(manifest.key_ids, [name]);
  const restored = join(tempDir(t), 'data');
  mkdirSync(restored, { mode: 0o700 });
  writeFileSync(join(restored, 'vault.db'), readFileSync(file).subarray(0, -4096), { mode: 0o600 });
  writeFileSync(join(restored, 'master.key'), readFileSync(join(dataDir, 'master.key')), { mode: 0o600 });
  // A backup is a database file, whichever engine wrote it.
  const ofFile = { database: undefined };
  const { vault: again } = await testVault(t, { dataDir: restored, world, settings: ofFile });
  assert.deepEqual(await openEverything(again), { secrets: before.secrets, keys: [name] });
  const { keys } = await masterKeyStatus(vault, vault.keyring.path);
  assert.equal(
    keys.filter(({ state }) => state === 'previous').length,
    1,
    'the vault itself goes on rotating',
  );
});

test('a process with an outdated keyring writes backups for the new key', async (t) => {
  const { vault, dataDir, world } = await filled(t);
  const { vault: other } = await testVault(t, { dataDir, world });
  const { from, to } = await rotateMasterKey(vault, order);
  for (const id of from) await removeMasterKey(vault, localCli, vault.keyring.path, id);
  const file = join(tempDir(t), 'after.backup');
  await makeBackup(other, file);
  assert.deepEqual((await readBackup(file)).manifest.key_ids, [to]);
});

test('the entity tags of existing versions do not change in a rotation', async (t) => {
  const { vault } = await filled(t);
  const tags = () =>
    vault.db.reader
      .selectFrom('certificate_versions')
      .select(['private_key_etag', 'fullchain_etag'])
      .execute();
  const before = await tags();
  await rotateMasterKey(vault, order);
  assert.deepEqual(await tags(), before);
});

test('only a key that nothing in the vault needs is removed', async (t) => {
  const { vault, dataDir, before } = await filled(t);
  const [old = ''] = before.keys;
  const path = join(dataDir, 'master.key');
  const remove = (id: string) => removeMasterKey(vault, localCli, path, id);
  await assert.rejects(remove(old), /is needed by \d+ secrets in the vault/);
  await assert.rejects(rotateMasterKey(vault, cutOff), /cut off/);
  await assert.rejects(remove(old), /is needed by/);
  const { to } = await rotateMasterKey(vault, order);
  await assert.rejects(remove(to), /is needed by/);
  await assert.rejects(remove('0000000000000000'), /no file holds master key/);
  assert.deepEqual(await remove(old), [`${path}.${old}`]);
  assert.equal(existsSync(`${path}.${old}`), false);
  assert.deepEqual((await openEverything(vault)).secrets, before.secrets);
});
