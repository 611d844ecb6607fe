/**
 * Two who deal with master keys at once: whatever comes in between, no file of a key that is needed goes, and nothing
 * is retired early.
 */
import assert from 'node:assert/strict';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { MasterKey } from '../../../src/crypto/secrets/master-key.ts';
import { keyIn, readMasterKey } from '../../../src/crypto/secrets/master-key-file.ts';
import { currentMasterKey, listMasterKeys } from '../../../src/db/tables/master-keys.ts';
import { sealedPlaceNames } from '../../../src/db/tables/sealed-blobs.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { type RotationOrder, rotateMasterKey } from '../../../src/domain/master-key/master-key-rotation.ts';
import { sealKeyFiles } from '../../../src/domain/master-key/master-key-sealing.ts';
import { removeMasterKey } from '../../../src/domain/master-key/master-key-status.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { openEverything, sealEverything } from '../../harness/database/sealed-everything.ts';
import { testVault } from '../../harness/test-vault.ts';

const order: RotationOrder = { actor: localCli, report: () => undefined };
const someKey = (fill: number) => new MasterKey(new Secret(Buffer.alloc(32, fill)));

/** Stops a rotation when it says this. */
function cutOffAt(at: 'begun' | 'sealed'): RotationOrder {
  const report: RotationOrder['report'] = (step) => {
    if (step === at) throw new Error('cut off');
  };
  return { actor: localCli, report };
}

/** Two processes on one vault that has a secret in every place. */
async function two(t: TestContext) {
  const { vault, dataDir, world } = await testVault(t);
  await sealEverything(vault);
  const { vault: other } = await testVault(t, { dataDir, world });
  const { secrets, keys } = await openEverything(vault);
  return { vault, other, dataDir, secrets, old: keys[0] ?? '' };
}

/** The vault, where `meanwhile` happens just before its so-manieth transaction that writes. */
function interrupted(vault: Vault, before: number, meanwhile: () => unknown): Vault {
  let left = before;
  const write: Vault['db']['write'] = async (work) => {
    left -= 1;
    if (left === 0) await meanwhile();
    return vault.db.write(work);
  };
  return { ...vault, db: Object.create(vault.db, { write: { value: write } }) };
}

test('a key that becomes the current one while it is removed is kept', async (t) => {
  for (const before of [1, 2]) {
    const { vault, other, dataDir, secrets } = await two(t);
    const next = join(dataDir, 'master.key.next');
    writeFileSync(next, Buffer.alloc(32, 8), { mode: 0o600 });
    const slow = interrupted(vault, before, () =>
      assert.rejects(rotateMasterKey(other, cutOffAt('begun')), /cut off/),
    );
    const removal = removeMasterKey(slow, localCli, vault.keyring.path, someKey(8).name);
    await assert.rejects(removal, /is needed by the vault/);
    assert.equal(readMasterKey(next)?.name, someKey(8).name);
    assert.equal((await rotateMasterKey(other, order)).to, someKey(8).name);
    assert.deepEqual((await openEverything(other)).secrets, secrets);
  }
});

test('a next key whose file was removed before the rotation began does not become the current one', async (t) => {
  const { vault, dataDir, old } = await two(t);
  const slow = interrupted(vault, 1, () => rmSync(join(dataDir, 'master.key.next')));
  await assert.rejects(
    rotateMasterKey(slow, order),
    /the file of the next master key .* was removed during the rotation/,
  );
  assert.equal(await currentMasterKey(vault.db.reader), old);
  assert.deepEqual((await openEverything(vault)).keys, [old]);
});

test('sealing key files fails when a rotation moves them meanwhile, and does not overwrite them', async (t) => {
  const { vault, other, dataDir, secrets } = await two(t);
  let to = '';
  const sealing = sealKeyFiles(vault, localCli, undefined, async (file) => {
    ({ to } = await rotateMasterKey(other, order));
    return keyIn(file, undefined);
  });
  await assert.rejects(sealing, /master\.key changed during this command/);
  assert.equal(readMasterKey(join(dataDir, 'master.key'))?.name, to);
  assert.deepEqual((await openEverything(vault)).secrets, secrets);
});

test('a late end of one rotation does not end a rotation that began meanwhile', async (t) => {
  const { vault, other } = await two(t);
  await assert.rejects(rotateMasterKey(vault, cutOffAt('begun')), /cut off/);
  // One transaction for the files, one for each place, then the one that ends it.
  const late = interrupted(vault, 1 + sealedPlaceNames.length + 1, async () => {
    await rotateMasterKey(other, order);
    await assert.rejects(rotateMasterKey(other, cutOffAt('sealed')), /cut off/);
  });
  assert.deepEqual((await rotateMasterKey(late, order)).from, []);
  const states = (await listMasterKeys(vault.db.reader)).map(({ state }) => state);
  assert.deepEqual(states.sort(), ['current', 'previous', 'retired']);
  const { to } = await rotateMasterKey(vault, order);
  assert.deepEqual((await openEverything(vault)).keys, [to]);
});

test('a current or retired key is rejected as the new key, and no file is left', async (t) => {
  const { vault, other, dataDir, old } = await two(t);
  const { to } = await rotateMasterKey(vault, { ...order, newKey: someKey(7) });
  const refused = (key: MasterKey | undefined, words: RegExp) =>
    assert.rejects(rotateMasterKey(vault, { ...order, newKey: key }), words);
  await refused(someKey(7), /is already the current one/);
  const before = other.keyring.find(old);
  await removeMasterKey(vault, localCli, vault.keyring.path, old);
  await refused(before, /is a retired key of this vault/);
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name.startsWith('master.key')),
    ['master.key'],
  );
  assert.equal(await currentMasterKey(vault.db.reader), to);
});
