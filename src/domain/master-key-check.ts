/**
 * The blob by which a vault knows its master key. It is sealed at the first start, and anew when another key follows; a key
 * that does not open it is not this vault's, and the vault refuses to work with it before anything could be sealed by it.
 */
import { Secret } from '../base/secret.ts';
import type { MasterKey } from '../crypto/master-key.ts';
import { type BlobOwner, SealError, seal, sealedBy } from '../crypto/sealing.ts';
import type { Writer } from '../db/database.ts';
import { listMasterKeys, setCurrentMasterKey } from '../db/master-keys.ts';
import { putSetting, readSetting } from '../db/settings.ts';
import { openFor } from './sealed-secrets.ts';
import type { Vault } from './vault.ts';

const key = 'master-key-check';
const owner: BlobOwner = { table: 'settings', record: key, purpose: 'seal: master key check' };
const content = 'this is the master key of this vault';

type Parts = Pick<Vault, 'db' | 'keyring'>;

/**
 * Whether the current key of this database is on the keyring, which seals with it from then on. `absent` where the database
 * is new. Throws StorageError where it cannot be read.
 */
export async function masterKeyFits({ db, keyring }: Parts): Promise<'fits' | 'does-not-fit' | 'absent'> {
  const blob = await readSetting(db.reader, key);
  if (blob === undefined) return 'absent';
  if (!Buffer.isBuffer(blob)) return 'does-not-fit';
  try {
    const said = openFor({ keyring }, owner, blob);
    if (said.expose().toString() !== content) return 'does-not-fit';
    keyring.use(sealedBy(blob));
    return 'fits';
  } catch (error) {
    if (error instanceof SealError) return 'does-not-fit';
    throw error;
  }
}

/** Names of the keys that blobs may still need, as a rotation has not ended, and that are not on the keyring. */
export async function missingMasterKeys({ db, keyring }: Parts): Promise<string[]> {
  const rows = await listMasterKeys(db.reader);
  return rows
    .filter(({ id, state }) => state === 'previous' && keyring.find(id) === undefined)
    .map(({ id }) => id);
}

/** Binds a new database to the master key; does nothing where it is bound already. */
export async function bindMasterKey({ db, keyring, world }: Parts & Pick<Vault, 'world'>): Promise<void> {
  await db.write(async (writer) => {
    if ((await readSetting(writer, key)) !== undefined) return;
    await makeCurrent({ world }, writer, keyring.current);
  });
}

/** From the end of the transaction on, this key seals. */
export async function makeCurrent(
  { world }: Pick<Vault, 'world'>,
  writer: Writer,
  masterKey: MasterKey,
): Promise<void> {
  await putSetting(writer, key, seal(masterKey, world, owner, new Secret(Buffer.from(content))));
  await setCurrentMasterKey(writer, masterKey.name, world.now());
}
