/**
 * Restores a backup: checks it fully, copies it, opens it as the vault would and binds it to its master key, all beside
 * the existing vault. Only then does it replace that vault, whose files are kept.
 */
import { closeSync, openSync } from 'node:fs';
import { basename } from 'node:path';
import { makeDurableDirectory, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { describeFileError, describeSystemError, isNoSpaceError } from '../../base/system-error.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { World } from '../../base/world.ts';
import { Keyring, keyFilesBeside } from '../../crypto/secrets/keyring.ts';
import { MasterKey } from '../../crypto/secrets/master-key.ts';
import { type KeyFile, keyFileContent, keyIn } from '../../crypto/secrets/master-key-file.ts';
import type { PassphraseKey } from '../../crypto/secrets/passphrase-key.ts';
import { Database } from '../../db/database.ts';
import { DatabaseFile } from '../../db/database-file.ts';
import { deleteJobLeases } from '../../db/tables/nodes/job-leases.ts';
import { deleteNodes } from '../../db/tables/nodes/nodes.ts';
import { deleteSettings, putSetting } from '../../db/tables/settings.ts';
import { localCli, record } from '../audit/audit.ts';
import { ensureIdentity } from '../instance/vault-identity.ts';
import { masterKeyFits } from '../master-key/master-key-check.ts';
import { adoptRows } from '../master-key/row-tag-backfill.ts';
import { openMasterKey } from './backup.ts';
import { checkBackup, copyOut, readBackup } from './backup-file.ts';
import type { Manifest } from './backup-manifest.ts';
import { draftFor, placeOf, removeDraft, writeKeyDraft } from './restore-drafts.ts';
import { finishRestore, isRestorePending, type Move, setAsideLostLog, swapIn } from './restore-swap.ts';

/** The source and target of a restore. */
export type RestoreOrder = {
  readonly file: string;
  readonly dataDir: string;
  readonly masterKeyFile: string;
  /** The key that a command printed, instead of a file. */
  readonly givenKey?: MasterKey | undefined;
  /** What to do with an existing vault. */
  readonly existing: 'refuse' | 'replace';
  /** Called if the master key must come from the backup: candidate passphrases, likeliest first. */
  readonly passphrases: () => Promise<readonly Secret<string>[]>;
  /** Returns the key that opens a sealed key file. Throws OperatorError. */
  readonly lockOf: (file: KeyFile) => Promise<PassphraseKey | undefined>;
  /** Seals a key file that is restored from the backup; undefined to leave it unsealed. Throws OperatorError. */
  readonly freshLock: () => Promise<PassphraseKey | undefined>;
};

/** A backup that can be restored here. */
export type Restorable = {
  readonly manifest: Manifest;
  /** The verified checksum. */
  readonly digest: Buffer;
  readonly masterKey: MasterKey;
  /** Whether the key is already in its file or comes from the backup. */
  readonly keyIs: 'there' | 'in the backup';
  /** The file that holds or will hold the key. */
  readonly keyFile: string;
};

/** Restores, and returns the names under which old files are kept. Throws OperatorError, having changed nothing. */
export async function restore(world: World, order: RestoreOrder): Promise<Restorable & { kept: string[] }> {
  const { file, dataDir, masterKeyFile } = order;
  DatabaseFile.in(dataDir).refuseUnsafePlace();
  DatabaseFile.in(dataDir).refuseMisplaced();
  finishRestore(dataDir);
  const path = placeOf(DatabaseFile.in(dataDir).path);
  const keyPath = placeOf(masterKeyFile);
  refuseExisting(order);
  const restorable = await checkRestorable(order);
  const { masterKey, keyIs } = restorable;
  const stamp = formatTimestamp(world.now()).replaceAll(/[-:]/g, '');
  const database = { from: draftFor(path, world), to: path };
  const key = { from: draftFor(keyPath, world), to: keyPath };
  try {
    makeDurableDirectory(dataDir);
    await copyOut(file, restorable, database.from);
    await openOnce(world, database.from, order, restorable);
    if (keyIs === 'in the backup') {
      writeKeyDraft(key.from, keyFileContent(world, masterKey, await order.freshLock()));
    }
    const moves: Move[] = keyIs === 'in the backup' ? [key, database] : [database];
    return { ...restorable, kept: takePlace(order, moves, stamp) };
  } catch (error) {
    throw told(error, dataDir);
  } finally {
    // The next command completes renames that the disk rejected.
    if (!isRestorePending(dataDir)) {
      removeDraft(database.from);
      removeDraft(key.from);
    }
  }
}

/**
 * Fully checks a backup and finds its master key, in its file or in the backup. Throws OperatorError if the backup
 * cannot be restored. Writes nothing.
 */
export async function checkRestorable(order: RestoreOrder): Promise<Restorable> {
  const { manifest } = await readable(order.file);
  const found = await findKey(order, manifest);
  return { ...(await checkBackup(order.file, found.masterKey)), ...found };
}

async function findKey(
  { file, masterKeyFile, givenKey, passphrases, lockOf, existing }: RestoreOrder,
  { key_ids, sealed_master_key }: Manifest,
): Promise<Pick<Restorable, 'masterKey' | 'keyIs' | 'keyFile'>> {
  const [needed = ''] = key_ids;
  if (givenKey?.name === needed) return { masterKey: givenKey, keyIs: 'there', keyFile: masterKeyFile };
  if (givenKey !== undefined) {
    throw new OperatorError(
      `${file} needs master key ${needed}, but the master key command prints ${givenKey.name}`,
      {
        hint: 'Make the command print the right key, or restore with --master-key-file and store the key afterwards. Nothing was changed.',
      },
    );
  }
  const files = keyFilesBeside(masterKeyFile);
  const right = files.find(({ id }) => id === needed);
  const key = right && keyIn(right, await lockOf(right));
  if (key !== undefined) return { masterKey: key, keyIs: 'there', keyFile: right?.path ?? masterKeyFile };
  const [there] = files;
  const found = there === undefined ? `${masterKeyFile} is missing` : `${masterKeyFile} holds ${there.id}`;
  if (sealed_master_key === undefined) {
    throw new OperatorError(`${file} needs master key ${needed}, but ${found}`, {
      hint: 'Restore the right key to that file, or use --master-key-file to name it. The backup does not include the key.',
    });
  }
  if (there !== undefined && existing === 'refuse') {
    throw new OperatorError(`${file} includes master key ${needed}, but ${found}`, {
      hint: 'Use --master-key-file to name another file, or --replace to replace the key and keep a copy of the old one.',
    });
  }
  let bytes: Secret | undefined;
  for (const passphrase of await passphrases()) {
    bytes ??= await openMasterKey(passphrase, sealed_master_key, needed);
  }
  const masterKey = bytes === undefined ? undefined : new MasterKey(bytes);
  if (masterKey?.name !== needed) {
    throw new OperatorError('wrong passphrase for the master key in the backup', {
      hint: 'Try again. Nothing was changed.',
    });
  }
  return { masterKey, keyIs: 'in the backup', keyFile: masterKeyFile };
}

/** Opens the database once, so that schema, migrations or key fail here, not at the next start. Records the restore. */
export async function openOnce(
  world: World,
  path: string,
  { file, masterKeyFile }: RestoreOrder,
  { manifest, masterKey }: Restorable,
): Promise<void> {
  const db = await Database.open(path, world);
  try {
    const parts = { db, world, keyring: new Keyring(masterKeyFile, masterKey) };
    if ((await masterKeyFits(parts)) !== 'fits') {
      throw new OperatorError(`the master key cannot decrypt the secrets in ${file}`, {
        hint: 'Use another backup. Nothing was changed.',
      });
    }
    await adoptRows(parts);
    const { created_at, vault_version } = manifest;
    await db.write(async (writer) => {
      await putSetting(writer, 'last-backup-at', Date.parse(created_at));
      await ensureIdentity(writer, world);
      await deleteSettings(writer, ['served-since', 'served-by', 'served-settings']);
      await deleteNodes(writer);
      await deleteJobLeases(writer);
      const detail = { created_at, vault_version };
      const resource = `backup:${basename(file)}`;
      record(writer, { actor: localCli, action: 'backup.restore', resource, detail }, world.now());
    });
  } finally {
    await db.close();
  }
  syncPath(path);
}

/** Creates an empty database if there is none, so that no other process creates one meanwhile. */
function takePlace(order: RestoreOrder, moves: readonly Move[], stamp: string): string[] {
  const database = DatabaseFile.in(order.dataDir);
  const lost = setAsideLostLog(database, stamp);
  closeSync(openSync(database.path, 'a', 0o600));
  const held = database.hold();
  try {
    refuseExisting(order);
    return [...lost, ...swapIn(order.dataDir, moves, held, stamp)];
  } finally {
    held.release();
  }
}

function refuseExisting({ dataDir, existing }: RestoreOrder): void {
  if (existing === 'replace') return;
  const database = DatabaseFile.in(dataDir);
  const log = database.hasContent() ? undefined : database.leftLog();
  if (log !== undefined) {
    throw new OperatorError(`the database ${database.path} is missing, but its log ${log} contains data`, {
      hint: 'Put vault.db back if you have it, or add --replace to restore the backup and keep a copy of the log. Nothing was changed.',
    });
  }
  if (!database.hasContent()) return;
  throw new OperatorError(`${dataDir} already contains a vault`, {
    hint: 'Use --data-dir to restore elsewhere, or --replace to replace the vault and keep a copy of it.',
  });
}

async function readable(file: string): ReturnType<typeof readBackup> {
  try {
    return await readBackup(file);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`cannot read ${file}: ${describeSystemError(error)}`, {
      hint: 'Name an existing backup that this user can read.',
      cause: error,
    });
  }
}

/** Turns system errors into OperatorError. */
export function told(error: unknown, dataDir: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof OperatorError || code === undefined) return error;
  return new OperatorError(`cannot restore to ${dataDir}: ${describeFileError(error)}`, {
    hint: isNoSpaceError(error)
      ? 'Free some space. Nothing was changed.'
      : 'Run the command as the user that owns the vault, or use --data-dir to name another directory. Nothing was changed.',
    cause: error,
  });
}
