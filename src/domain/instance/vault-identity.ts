/**
 * The id of a vault: random, assigned to each database when it is created and again when it is restored, so that a
 * clone gets a new id. Backups are pruned by it.
 */
import type { World } from '../../base/world.ts';
import type { Database, Reader, Writer } from '../../db/database.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';

/** 128 random bits do not collide by chance. */
const idBytes = 16;

export type VaultIdentity = {
  readonly id: string;
  /** When the database got the id, in UTC milliseconds. */
  readonly since: number;
};

/** The identity of the database; undefined if a vault without ids wrote it. */
export async function vaultIdentity(reader: Reader): Promise<VaultIdentity | undefined> {
  const id = await readSetting(reader, 'vault-id');
  const since = await readSetting(reader, 'vault-id-since');
  return typeof id === 'string' ? { id, since: typeof since === 'number' ? since : 0 } : undefined;
}

/** The identity of the database, created if it is missing. */
export async function ensureVaultIdentity(parts: { db: Database; world: World }): Promise<VaultIdentity> {
  const { db, world } = parts;
  const known = await vaultIdentity(db.reader);
  if (known !== undefined) return known;
  return db.write(async (writer) => (await vaultIdentity(writer)) ?? ensureIdentity(writer, world));
}

/** Gives the database a new identity. */
export async function ensureIdentity(writer: Writer, world: World): Promise<VaultIdentity> {
  const identity = { id: world.randomBytes(idBytes).toString('hex'), since: world.now() };
  await putSetting(writer, 'vault-id', identity.id);
  await putSetting(writer, 'vault-id-since', identity.since);
  return identity;
}
