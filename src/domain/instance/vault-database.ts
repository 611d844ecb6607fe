/** The database of a data directory: checks before it is opened, and how commands open it. */
import type { Worker } from 'node:worker_threads';
import type { World } from '../../base/world.ts';
import type { Keyring } from '../../crypto/secrets/keyring.ts';
import { Database } from '../../db/database.ts';
import { DatabaseFile } from '../../db/database-file.ts';
import type { ServerOptions } from '../../db/engine.ts';
import { isPostgresUrl } from '../../db/postgres/url-parts.ts';
import { refuseMoved } from './moved-vault.ts';
import { refuseIncompleteDatabase } from './vault-mark.ts';

/** How to treat a vault that was moved to another database: only a few commands open it. */
export type WhenMoved = 'refuse' | 'open';

export type OpenOptions = {
  readonly startThread?: ((library: string | undefined) => Worker | undefined) | undefined;
  readonly moved?: WhenMoved | undefined;
  /** Called after an upgrade with the path of the copy made before it. */
  readonly onUpgraded?: ((copy: string) => void) | undefined;
};

/** An open database. The caller that opens it closes it. */
export type VaultDatabase = Database;

/** The file of the database in a data directory, whether or not it exists. */
export function databaseIn(dataDir: string): DatabaseFile {
  return DatabaseFile.in(dataDir);
}

/** The version of the embedded SQLite, and the name of the newest schema. */
export function storageVersion(): ReturnType<typeof DatabaseFile.storageVersion> {
  return DatabaseFile.storageVersion();
}

/** Kinds of objects whose names shell completion offers. */
export const nameKinds = ['certificates', 'issuers', 'dns-providers'] as const;

export type NameKind = (typeof nameKinds)[number];

const tablesOfNames = {
  certificates: 'certificates',
  issuers: 'issuers',
  'dns-providers': 'dns_providers',
} as const;

/** At most a thousand names of this kind, in order, without opening the vault. Throws if the directory has no vault. */
export function namesInVault(dataDir: string, kind: NameKind): string[] {
  return DatabaseFile.in(dataDir).namesIn(tablesOfNames[kind], 1000);
}

/** Whether a setting or an argument is the URL of a database server, not a directory. */
export function isServerUrl(text: string): boolean {
  return isPostgresUrl(text);
}

/** Throws OperatorError if the data directory is on a file system that damages databases. */
export function refuseUnsafePlace(dataDir: string): void {
  DatabaseFile.in(dataDir).refuseUnsafePlace();
}

/**
 * Throws OperatorError or StorageError if the database in the data directory, which must not be empty, is not the
 * complete database of a vault. Returns the result of `refuseIncompleteDatabase`. Changes nothing.
 */
export function refuseUnusableDatabase(
  dataDir: string,
  keyring: Pick<Keyring, 'find'>,
): ReturnType<typeof refuseIncompleteDatabase> {
  const database = DatabaseFile.in(dataDir);
  database.refuseEmpty();
  return refuseIncompleteDatabase(database, keyring);
}

/**
 * Opens the database in the data directory, creates it if it is missing, and migrates it. With `startThread`, all
 * writes run on the thread that it starts. Throws like `Database.open` and `refuseMoved`.
 */
export async function openDatabase(
  dataDir: string,
  world: World,
  { moved, ...options }: OpenOptions = {},
): Promise<VaultDatabase> {
  return unlessMoved(await Database.open(DatabaseFile.in(dataDir).path, world, options), moved);
}

/** Opens the database on a server and migrates it. Rejects like `Database.connect` and `refuseMoved`. */
export async function connectDatabase(
  url: string,
  { moved, ...options }: ServerOptions & Pick<OpenOptions, 'moved'>,
): Promise<VaultDatabase> {
  return unlessMoved(await Database.connect(url, options), moved);
}

async function unlessMoved(db: Database, moved: WhenMoved = 'refuse'): Promise<Database> {
  if (moved === 'open') return db;
  try {
    await refuseMoved(db);
    return db;
  } catch (error) {
    await db.close();
    throw error;
  }
}
