/**
 * The database file of a data directory and the files beside it, whether or not a vault has it open. Only the embedded
 * engine has one. Other folders reach these files through this class alone.
 */
import { stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hasContent } from '../base/file-content.ts';
import { networkFileSystem } from '../base/network-file-system.ts';
import { OperatorError } from '../base/operator-error.ts';
import { type DatabaseFacts, examineDatabase } from './sqlite/database-examination.ts';
import { companionsOf, databaseName, logOf } from './sqlite/database-files.ts';
import {
  type DatabaseInspection,
  foldsInFile,
  inspectDatabase,
  namesIn,
  refuseEmptyDatabase,
  refuseMisplacedFiles,
} from './sqlite/database-inspection.ts';
import { type HeldDatabase, holdDatabase } from './sqlite/database-lock.ts';
import { storageVersion } from './sqlite/migrations.ts';
import { leftLog, lostDatabaseAdvice, refuseLeftLog, removeDrafts } from './sqlite/new-database.ts';

export class DatabaseFile {
  /**
   * Open and close an open database only through the store: anything else would drop the locks of this process.
   */
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** The file of the data directory, whether or not it exists. */
  static in(dataDir: string): DatabaseFile {
    return new DatabaseFile(join(dataDir, databaseName));
  }

  /** The version of the embedded SQLite, and the name of the newest schema. */
  static storageVersion(): { readonly sqlite: string; readonly schema: string } {
    return storageVersion();
  }

  /** Where the engine keeps what is committed until it folds it into the file. */
  get log(): string {
    return logOf(this.path);
  }

  /** The files in which the engine may keep a part of the database, beside it. */
  get companions(): readonly string[] {
    return companionsOf(this.path);
  }

  /** What to do about a lost database: the end of every refusal to create a new one in its place. */
  get lostAdvice(): string {
    return lostDatabaseAdvice(this.path);
  }

  /** Whether it exists and is not empty. Throws the error of the system if that is unknown. */
  hasContent(): boolean {
    return hasContent(this.path);
  }

  /** The log beside it that still contains data; undefined if there is none. */
  leftLog(): string | undefined {
    return leftLog(this.path);
  }

  /** In bytes: the database, its log, and what is free on its disk. */
  async sizes(): Promise<{ readonly database: number; readonly log: number; readonly free: number }> {
    const { bavail, bsize } = await statfs(dirname(this.path));
    return { database: await sizeOf(this.path), log: await sizeOf(this.log), free: bavail * bsize };
  }

  /** Throws OperatorError if it is, or would be, on a file system that damages databases. */
  refuseUnsafePlace(): void {
    refuseNetworkPlace(this.path);
  }

  /** Throws OperatorError if it or a companion is not a regular file. */
  refuseMisplaced(): void {
    refuseMisplacedFiles(this.path);
  }

  /** Throws OperatorError if it is missing or empty but its log contains data. */
  refuseLeftLog(): void {
    refuseLeftLog(this.path);
  }

  /** Throws OperatorError if it is a database without tables, or cannot be read. */
  refuseEmpty(): void {
    refuseEmptyDatabase(this.path);
  }

  /** What a database that has tables reveals without being opened for writing. Throws StorageError. */
  inspect(): DatabaseInspection {
    return inspectDatabase(this.path);
  }

  /**
   * At most `limit` names in this table, in order. Migrates and creates nothing. Throws if there is no database.
   */
  namesIn(table: 'certificates' | 'issuers' | 'dns_providers', limit: number): string[] {
    return namesIn(this.path, table, limit);
  }

  /**
   * How many times a log was folded into the file, according to the file alone. Only for a process that does not have
   * the database open.
   */
  folds(): number {
    return foldsInFile(this.path);
  }

  /** Reads all of it without changing it, which may take seconds. Throws OperatorError or StorageError. */
  examine(): DatabaseFacts {
    return examineDatabase(this.path);
  }

  /** Keeps all other processes from opening it. Throws OperatorError if one has it open. */
  hold(): HeldDatabase {
    return holdDatabase(this.path);
  }

  /** Removes what killed processes left of its creation, where the disk allows it. */
  removeDrafts(): void {
    removeDrafts(this.path);
  }
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path, { throwIfNoEntry: false }))?.size ?? 0;
}

/**
 * Throws OperatorError if the database at `path` is, or would be, on a network file system: SQLite's log needs working
 * locks and shared memory (sqlite.org/wal.html).
 */
function refuseNetworkPlace(path: string): void {
  // The file may be a link to another disk.
  const type = networkFileSystem(path);
  if (type === undefined) return;
  const dataDir = dirname(path);
  throw new OperatorError(
    `the database in ${dataDir} is on a network file system (${type}), which can corrupt it`,
    {
      hint:
        'Locks and shared memory are unreliable there. Stop the vault, copy the directory to a local disk\n' +
        `  (cp -a ${dataDir} /var/lib/vault), and set --data-dir to it. Backups may be on a network file system.\n` +
        '  Nothing was changed.',
    },
  );
}
