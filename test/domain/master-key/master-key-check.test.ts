/** The check blob: a vault knows its master key, and no other key passes for it. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { Keyring } from '../../../src/crypto/secrets/keyring.ts';
import { MasterKey } from '../../../src/crypto/secrets/master-key.ts';
import { Database } from '../../../src/db/database.ts';
import { bindMasterKey, masterKeyFits } from '../../../src/domain/master-key/master-key-check.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

async function parts(t: Parameters<typeof tempDir>[0]) {
  const world = new TestWorld();
  const db = await Database.open(join(tempDir(t), 'vault.db'), world);
  t.after(() => db.close());
  return { db, world, keyring: keyring(1, t) };
}

/** A keyring with one key that is in no file. */
function keyring(fill: number, t: Parameters<typeof tempDir>[0]): Keyring {
  return new Keyring(join(tempDir(t), 'master.key'), new MasterKey(new Secret(Buffer.alloc(32, fill))));
}

test('masterKeyFits returns absent for a new database', async (t) => {
  assert.equal(await masterKeyFits(await parts(t)), 'absent');
});

test('the bound master key fits, and another key does not', async (t) => {
  const opened = await parts(t);
  await bindMasterKey(opened);
  assert.equal(await masterKeyFits(opened), 'fits');
  assert.equal(await masterKeyFits({ ...opened, keyring: keyring(2, t) }), 'does-not-fit');
});

test('a database that is bound cannot be bound again', async (t) => {
  const opened = await parts(t);
  await bindMasterKey(opened);
  await bindMasterKey({ ...opened, keyring: keyring(2, t) });
  assert.equal(await masterKeyFits(opened), 'fits');
});

for (const [what, value] of [
  ['cut', Buffer.alloc(10)],
  ['altered', Buffer.concat([Buffer.of(1), Buffer.alloc(80)])],
  ['a text', 'this is the master key of this vault'],
] as const) {
  test(`a check blob that is ${what} fits no key`, async (t) => {
    const opened = await parts(t);
    await bindMasterKey(opened);
    await opened.db.write((writer) =>
      writer.updateTable('settings').set({ value }).where('key', '=', 'master-key-check').execute(),
    );
    assert.equal(await masterKeyFits(opened), 'does-not-fit');
  });
}
