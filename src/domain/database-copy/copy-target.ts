/**
 * Where a vault is copied to: the database of a server, or a directory. In a directory the database has a name of its
 * own until it is complete.
 */
import { closeSync, openSync, renameSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makeDurableDirectory, removeFile, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { describeFileError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import { Database } from '../../db/database.ts';
import { DatabaseCopy } from '../../db/database-copy.ts';
import { DatabaseFile } from '../../db/database-file.ts';
import type { ServerOptions } from '../../db/engine.ts';
import { markPath } from '../instance/vault-mark.ts';

export type CopyTarget = {
  readonly db: Database;
  /** How the mark of the source and messages name it. */
  readonly place: string;
  /** Call it when the copy is complete: from then on it can be opened. The database is closed then. */
  readonly publish: () => Promise<void>;
  /** Closes the database; what was begun stays. */
  readonly close: () => Promise<void>;
  /** Closes the database, and removes what was begun. */
  readonly abandon: () => Promise<void>;
};

/** Opens the database of a server. Throws as `Database.connect`. */
export async function serverTarget(url: string, options: ServerOptions): Promise<CopyTarget> {
  const db = await Database.connect(url, { ...options, connections: 1 });
  const close = () => db.close();
  return { db, place: db.place, publish: close, close, abandon: close };
}

/** Throws OperatorError if the directory has a database, or cannot have one. */
export async function directoryTarget(directory: string, world: World): Promise<CopyTarget> {
  const place = resolve(directory);
  const file = DatabaseFile.in(place);
  file.refuseUnsafePlace();
  file.refuseMisplaced();
  refuseExisting(file, place);
  const draft = join(place, 'vault.db.copying');
  try {
    makeDurableDirectory(place);
  } catch (error) {
    throw new OperatorError(`cannot create ${place}: ${describeFileError(error)}`, {
      hint: 'Name a directory that this user can write to. Nothing was changed.',
      cause: error,
    });
  }
  const db = await Database.open(draft, world);
  return {
    db,
    place,
    publish: async () => {
      await db.foldLog();
      await db.close();
      syncPath(draft);
      publish(draft, file, place);
      syncPath(place);
    },
    close: () => db.close(),
    abandon: async () => {
      await db.close();
      new DatabaseCopy(draft).remove();
    },
  };
}

/** Never in the place of a vault: an empty database stands there meanwhile, which no other process can open. */
function publish(draft: string, file: DatabaseFile, place: string): void {
  closeSync(openSync(file.path, 'a', 0o600));
  const held = file.hold();
  try {
    refuseExisting(file, place);
    // It tells of a database that was here before.
    removeFile(markPath(file.path));
    renameSync(draft, file.path);
  } finally {
    held.release();
  }
}

function refuseExisting(file: DatabaseFile, place: string): void {
  if (!file.hasContent() && file.leftLog() === undefined) return;
  throw new OperatorError(`${place} already contains a vault`, {
    hint: `Name an empty directory, or move ${file.path} and its companions away. Nothing was changed.`,
  });
}
