/** Status of the master keys: their names, their files, and what each of them seals. Opens none. */
import { dirname } from 'node:path';
import { removeFile, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { World } from '../../base/world.ts';
import { keyFilesBeside } from '../../crypto/secrets/keyring.ts';
import type { Database, Reader } from '../../db/database.ts';
import { listMasterKeys } from '../../db/tables/master-keys.ts';
import { countSealedBlobs, type SealedPlace } from '../../db/tables/sealed-blobs.ts';
import { type Actor, record } from '../audit/audit.ts';

/** `unused` is a key in a file that has sealed nothing, such as the next; `unknown` is one that only blobs refer to. */
export type MasterKeyView = {
  id: string;
  state: 'current' | 'previous' | 'retired' | 'unused' | 'unknown';
  since: string | null;
  retired_at: string | null;
  files: { path: string; sealed: boolean }[];
  blobs: Partial<Record<SealedPlace, number>>;
};

export type MasterKeyStatus = {
  /** Null if the key comes from a command. */
  key_file: string | null;
  rotation: 'none' | 'unfinished';
  keys: MasterKeyView[];
};

/**
 * Lists the keys of a database and of any files beside `keyFile`. Counts all blobs. Throws if the key file cannot be a
 * key.
 */
export async function masterKeyStatus(
  { db }: { readonly db: Pick<Database, 'reader'> },
  keyFile: string | undefined,
): Promise<MasterKeyStatus> {
  const rows = await listMasterKeys(db.reader);
  const files = keyFile === undefined ? [] : keyFilesBeside(keyFile);
  const counts = await countSealedBlobs(db.reader);
  const ids = new Set([
    ...rows.map(({ id }) => id),
    ...files.map(({ id }) => id),
    ...counts.map(({ key }) => key),
  ]);
  const keys = [...ids].map((id): MasterKeyView => {
    const row = rows.find((row) => row.id === id);
    const own = files.filter((file) => file.id === id);
    return {
      id,
      state: row?.state ?? (own.length > 0 ? 'unused' : 'unknown'),
      since: row === undefined ? null : formatTimestamp(row.since),
      retired_at: row === undefined || row.retired_at === null ? null : formatTimestamp(row.retired_at),
      files: own.map(({ path, kind }) => ({ path, sealed: kind === 'sealed' })),
      blobs: Object.fromEntries(
        counts.filter(({ key }) => key === id).map(({ place, blobs }) => [place, blobs]),
      ),
    };
  });
  const isRotating = rows.some(({ state }) => state === 'previous');
  return { key_file: keyFile ?? null, rotation: isRotating ? 'unfinished' : 'none', keys };
}

/**
 * Removes the files of a key that nothing in the database needs, after `confirm`, which may throw. Returns their paths.
 * Throws OperatorError otherwise.
 */
export async function removeMasterKey(
  parts: { readonly db: Database; readonly world: World },
  actor: Actor,
  keyFile: string,
  id: string,
  confirm?: () => Promise<void>,
): Promise<string[]> {
  const { keys } = await masterKeyStatus(parts, keyFile);
  const key = keys.find((key) => key.id === id);
  if (key === undefined || key.files.length === 0) {
    throw new OperatorError(`no file holds master key ${id}`, {
      hint: 'Try: vault master-key status',
    });
  }
  const blobs = Object.values(key.blobs).reduce((sum, count) => sum + count, 0);
  if (blobs > 0) throw needed(id, `${blobs} secret${blobs === 1 ? '' : 's'} in the vault`);
  const { db, world } = parts;
  await refuseInUse(db.reader, id);
  await confirm?.();
  await db.write(async (writer) => {
    await refuseInUse(writer, id);
    const event = { actor, action: 'master_key.remove', resource: `master-key:${id}` } as const;
    record(writer, { ...event, detail: { files: key.files.length } }, world.now());
  });
  return db.write(async (writer) => {
    // Rotations begin and move files under this same lock. Only the current key seals anything new.
    await refuseInUse(writer, id);
    const paths = keyFilesBeside(keyFile).flatMap((file) => (file.id === id ? file.path : []));
    for (const path of paths) {
      removeFile(path);
      syncPath(dirname(path));
    }
    return paths;
  });
}

async function refuseInUse(reader: Reader, id: string): Promise<void> {
  const row = (await listMasterKeys(reader)).find((row) => row.id === id);
  if (row?.state === 'current' || row?.state === 'previous') throw needed(id, 'the vault');
}

function needed(id: string, by: string): OperatorError {
  return new OperatorError(`master key ${id} is needed by ${by}`, {
    hint: 'Nothing was removed. To seal all secrets with a new key:\n  vault master-key rotate',
  });
}
