/** The database in a backup: a single file in the format of the embedded engine, whichever engine the vault has. */
import { type CopyFacts, cleanCopy, examineCopy, masterKeysIn } from './sqlite/backup-copy.ts';
import { removeDatabase } from './sqlite/database-files.ts';
import { isKnownMigration } from './sqlite/migrations.ts';

export class DatabaseCopy {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Removes the file, and what the engine has left beside it. */
  remove(): void {
    removeDatabase(this.#path);
  }

  /** Deletes what must not be restored from a new copy, and returns its contents. Throws CopyError. */
  clean(): Promise<CopyFacts> {
    return cleanCopy(this.#path);
  }

  /** The current master key, and whether the copy contains blobs of a previous key. */
  masterKeys(): { readonly current: string | undefined; readonly isRotating: boolean } {
    return masterKeysIn(this.#path);
  }

  /** Reads all of it and returns its contents. Throws OperatorError if it is damaged; messages call it `name`. */
  examine(name: string): CopyFacts {
    return examineCopy(this.#path, name);
  }
}

/** Of the migrations of a copy, those that this vault does not have. */
export function unknownMigrations(schema: readonly string[]): string[] {
  return schema.filter((name) => !isKnownMigration(name));
}
