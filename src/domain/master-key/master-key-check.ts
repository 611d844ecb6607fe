/**
 * The blob by which a vault recognizes its master key. It is sealed at the first start and resealed by each
 * rotation; the vault refuses a key that does not open it before it seals anything with that key. It
 * contains the secret that authenticates rows: replacing the blob does not make the vault trust rows again.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { IntegrityKey, integritySecretSize } from '../../crypto/secrets/integrity-key.ts';
import type { MasterKey } from '../../crypto/secrets/master-key.ts';
import { type BlobOwner, SealError, seal, sealedBy } from '../../crypto/secrets/sealing.ts';
import { chainBeginning } from '../../db/audit/audit-chain.ts';
import { writeAuditMark } from '../../db/audit/audit-mark.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { isEmptyVault } from '../../db/tables/empty-vault.ts';
import { listMasterKeys, setCurrentMasterKey } from '../../db/tables/master-keys.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';
import type {
  DatabaseContext,
  KeyringContext,
  SealingContext,
  SecretsContext,
  WorldContext,
} from '../contexts.ts';
import { openFor } from '../sealed-secrets.ts';

const key = 'master-key-check';
const owner: BlobOwner = { table: 'settings', record: key, purpose: 'seal: master key check' };
const content = 'this is the master key of this vault';

/**
 * Whether the keyring has the current key of this database. If so, the keyring seals with it from then on, and the
 * database's integrity key is set. `absent` if the database is new. Throws StorageError if it is unreadable.
 */
export async function masterKeyFits({
  db,
  keyring,
}: DatabaseContext & KeyringContext): Promise<'fits' | 'does-not-fit' | 'absent'> {
  const blob = await readSetting(db.reader, key);
  if (blob === undefined) return 'absent';
  if (!Buffer.isBuffer(blob)) return 'does-not-fit';
  try {
    const said = openFor({ keyring }, owner, blob);
    const parts = partsOf(said);
    if (parts.sentence !== content) return 'does-not-fit';
    const { secret } = parts;
    if (secret !== undefined) db.integrity ??= new IntegrityKey(secret);
    keyring.use(sealedBy(blob));
    return 'fits';
  } catch (error) {
    if (error instanceof SealError) return 'does-not-fit';
    throw error;
  }
}

/** Whether a vault has been created in this database. */
export async function isBoundToKey(reader: Reader): Promise<boolean> {
  return (await readSetting(reader, key)) !== undefined;
}

/** The secret that authenticates rows; undefined in a vault from before it existed. Throws SealError. */
export async function integritySecretIn(
  { keyring }: KeyringContext,
  reader: Reader,
): Promise<Secret | undefined> {
  const blob = await readSetting(reader, key);
  return Buffer.isBuffer(blob) ? partsOf(openFor({ keyring }, owner, blob)).secret : undefined;
}

/** A secret for a vault that has none. */
export function newIntegritySecret(world: Pick<World, 'randomBytes'>): Secret {
  return new Secret(world.randomBytes(integritySecretSize));
}

/** Splits a blob into its sentence and the secret. Blobs of earlier versions end after the sentence. */
function partsOf(said: Secret): { readonly sentence: string; readonly secret: Secret | undefined } {
  const bytes = said.expose();
  const rest = bytes.subarray(content.length);
  return {
    sentence: bytes.toString('latin1', 0, content.length),
    secret: rest.length === integritySecretSize ? new Secret(rest) : undefined,
  };
}

/** Names of keys that the keyring lacks and blobs may still need, because a rotation is unfinished. */
export async function missingMasterKeys({
  db,
  keyring,
}: DatabaseContext & KeyringContext): Promise<string[]> {
  const rows = await listMasterKeys(db.reader);
  return rows
    .filter(({ id, state }) => state === 'previous' && keyring.find(id) === undefined)
    .map(({ id }) => id);
}

/**
 * Binds a new database to the master key; does nothing if it is bound already. Throws OperatorError if it is not new:
 * then the blob was removed.
 */
export async function bindMasterKey({ db, keyring, world }: SecretsContext): Promise<void> {
  await db.write(async (writer) => {
    if ((await readSetting(writer, key)) !== undefined) return;
    if (!(await isEmptyVault(writer))) throw blobRemoved(db.place);
    const secret = newIntegritySecret(world);
    await writeAuditMark(writer, new IntegrityKey(secret), chainBeginning);
    await writeCheckBlob({ world }, writer, keyring.current, secret);
    await setCurrentMasterKey(writer, keyring.current.name, world.now());
  });
}

/** Makes this the sealing key from the commit on. */
export async function makeCurrent(
  vault: SealingContext,
  writer: Writer,
  masterKey: MasterKey,
): Promise<void> {
  const secret = await integritySecretIn(vault, writer);
  if (secret === undefined) throw new Error('a vault without an integrity secret');
  await writeCheckBlob(vault, writer, masterKey, secret);
  await setCurrentMasterKey(writer, masterKey.name, vault.world.now());
}

/** Writes the sealed blob with the secret. */
export async function writeCheckBlob(
  { world }: WorldContext,
  writer: Writer,
  masterKey: MasterKey,
  secret: Secret,
): Promise<void> {
  const plaintext = new Secret(Buffer.concat([Buffer.from(content), secret.expose()]));
  await putSetting(writer, key, seal(masterKey, world, owner, plaintext));
}

function blobRemoved(path: string): OperatorError {
  return new OperatorError(`the database ${path} lacks the check of its master key`, {
    hint: 'The database was modified outside the vault. Keep a copy of it, then restore the newest backup.',
  });
}
