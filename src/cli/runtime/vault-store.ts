/**
 * Where a vault keeps its database: in a file of the data directory, or on a server that other nodes use, too. What is
 * refused, created and tidied around it differs; what is opened then does not.
 */
import type { Worker } from 'node:worker_threads';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';
import type { Keyring } from '../../crypto/secrets/keyring.ts';
import { finishRestore } from '../../domain/backup/restore-swap.ts';
import type { SecretsContext } from '../../domain/contexts.ts';
import { updateMark } from '../../domain/instance/served-vault.ts';
import {
  connectDatabase,
  openDatabase,
  refuseUnsafePlace,
  refuseUnusableDatabase,
  type VaultDatabase,
  type WhenMoved,
} from '../../domain/instance/vault-database.ts';
import { markPath, readMark } from '../../domain/instance/vault-mark.ts';
import {
  beginVault,
  creationRefused,
  endBeginning,
  hasDatabase,
  refuseLostVault,
  requireVault,
} from '../../domain/instance/vault-presence.ts';
import { isBoundToKey } from '../../domain/master-key/master-key-check.ts';
import type { Settings } from '../settings/settings.ts';
import { makeDirectory } from './master-keys.ts';

export type WhenMissing = 'create' | 'refuse';

export type VaultStore = {
  /** Whether there is no vault yet. */
  readonly isNew: boolean;
  /** Opens the database, once the master key is there. Rejects with OperatorError if it is not fit. */
  readonly open: (keyring: Keyring) => Promise<VaultDatabase>;
  /** Throws OperatorError if rows would be tagged a second time, because the database is an old copy. */
  readonly refuseOldCopy: (db: VaultDatabase, keyring: Keyring) => void;
  /** Call it once the vault is complete. */
  readonly settle: (vault: SecretsContext) => Promise<void>;
  /** Call it if the vault cannot be opened. */
  readonly abandon: () => Promise<void>;
};

export type StoreOptions = {
  readonly whenMissing: WhenMissing;
  readonly startThread?: ((library: string | undefined) => Worker | undefined) | undefined;
  readonly moved?: WhenMoved | undefined;
  readonly onUpgraded?: ((copy: string) => void) | undefined;
};

/**
 * The store that the settings name. Throws OperatorError or StorageError if there is no vault, or none may be created.
 */
export async function vaultStore(
  settings: Settings,
  world: World,
  options: StoreOptions,
): Promise<VaultStore> {
  return settings.database === undefined
    ? fileStore(settings, world, options)
    : serverStore(settings, settings.database, world, options);
}

function fileStore(settings: Settings, world: World, { whenMissing, ...options }: StoreOptions): VaultStore {
  const { dataDir } = settings;
  refuseUnsafePlace(dataDir);
  finishRestore(dataDir);
  const isNew = !hasDatabase(dataDir);
  if (whenMissing === 'refuse') requireVault(settings);
  if (isNew) {
    refuseLostVault(settings);
    if (settings.noCreate) throw creationRefused(dataDir);
    makeDirectory(dataDir);
    beginVault(dataDir);
  }
  let mark: ReturnType<typeof refuseUnusableDatabase> = 'marked';
  let opened: VaultDatabase | undefined;
  return {
    isNew,
    open: async (keyring) => {
      if (hasDatabase(dataDir)) mark = refuseUnusableDatabase(dataDir, keyring);
      opened = await openDatabase(dataDir, world, options);
      return opened;
    },
    refuseOldCopy,
    settle: async (vault) => {
      if (mark === 'unmarked') await updateMark(vault);
      if (whenMissing === 'create') endBeginning(dataDir);
    },
    abandon: async () => opened?.close(),
  };
}

/** A mark signed by the master key means that the rows were tagged. */
function refuseOldCopy(db: VaultDatabase, keyring: Keyring): void {
  if (db.integrity !== undefined) return;
  const path = db.place;
  const mark = markPath(path);
  if (typeof readMark(mark, keyring) !== 'object') return;
  throw new OperatorError(`${path} is older than its mark ${mark}`, {
    hint: `Restore the newest backup. If you replaced the database with an older one yourself, empty the mark.\n  Fix: true >${mark}`,
  });
}

/** The database is opened before the master key: whether there is a vault, only the server knows. */
async function serverStore(
  { dataDir, noCreate, databaseConnections: connections, databaseSurroundings }: Settings,
  url: string,
  world: World,
  { whenMissing, moved }: StoreOptions,
): Promise<VaultStore> {
  const db = await connectDatabase(url, {
    world,
    connections,
    directory: dataDir,
    moved,
    ...databaseSurroundings,
  });
  try {
    const isNew = !(await isBoundToKey(db.reader));
    if (isNew && whenMissing === 'refuse') {
      throw new OperatorError(`no vault in ${db.place}`, {
        hint: 'Start "vault serve" with this --database to create one, or name another database.',
      });
    }
    if (isNew && noCreate) throw creationRefused(db.place);
    makeDirectory(dataDir);
    return {
      isNew,
      open: async () => db,
      refuseOldCopy: () => {
        // Vaults without tags are older than databases on servers: someone has exchanged the blob.
        if (db.integrity !== undefined) return;
        throw new OperatorError(
          `the database ${db.place} has the check of a master key from before rows were tagged`,
          {
            hint: 'The database was modified outside the vault. Keep a copy of it, then restore the newest backup.',
          },
        );
      },
      settle: async () => undefined,
      abandon: () => db.close(),
    };
  } catch (error) {
    await db.close();
    throw error;
  }
}
