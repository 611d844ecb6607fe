/**
 * The blob by which a vault knows its master key. It is sealed at the first start; a key that does not open it is not
 * this vault's, and the vault refuses to work with it before anything could be sealed by the wrong one.
 */
import { Secret } from '../base/secret.ts';
import { type BlobOwner, open, SealError, seal } from '../crypto/sealing.ts';
import { insertSetting, readSetting } from '../db/settings.ts';
import type { Vault } from './vault.ts';

const key = 'master-key-check';
const owner: BlobOwner = { table: 'settings', record: key, purpose: 'seal: master key check' };
const content = 'this is the master key of this vault';

/** `absent` where the database is new. Throws StorageError where it cannot be read. */
export async function masterKeyFits({
  db,
  masterKey,
}: Pick<Vault, 'db' | 'masterKey'>): Promise<'fits' | 'does-not-fit' | 'absent'> {
  const blob = await readSetting(db.reader, key);
  if (blob === undefined) return 'absent';
  if (!Buffer.isBuffer(blob)) return 'does-not-fit';
  try {
    return open(masterKey, owner, blob).expose().toString() === content ? 'fits' : 'does-not-fit';
  } catch (error) {
    if (error instanceof SealError) return 'does-not-fit';
    throw error;
  }
}

/** Binds a new database to the master key; does nothing where it is bound already. */
export async function bindMasterKey({
  db,
  masterKey,
  world,
}: Pick<Vault, 'db' | 'masterKey' | 'world'>): Promise<void> {
  const blob = seal(masterKey, world, owner, new Secret(Buffer.from(content)));
  await db.write(async (writer) => {
    if ((await readSetting(writer, key)) === undefined) await insertSetting(writer, key, blob);
  });
}
