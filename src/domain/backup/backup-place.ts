/** Where backups may go: outside the data directory, where no other user can change them, and with enough space. */
import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { type Judged, judgePath, refuseUntrusted } from '../../base/paths/trusted-path.ts';

import type { DatabaseContext } from '../contexts.ts';
import type { DiskSpace } from '../health/disk-space.ts';

/**
 * SQLite opens a draft by its path repeatedly: other users who can rename it would receive the copy, or redirect the
 * vault's writes. Group permissions on the directories above are left to `vault doctor`.
 */
const use = { what: 'the backup directory', groups: 'above' } as const;

/** Throws OperatorError, with the command that fixes it, if other users can change the directory or its path. */
export async function refuseForeignBackups(directory: string): Promise<void> {
  await refuseUntrusted(directory, use);
}

/** Judges what other users can change on the directory's path. */
export function judgeBackups(directory: string): Promise<Judged> {
  return judgePath(directory, use);
}

/**
 * Throws OperatorError for a path in the data directory: a backup there would be lost together with the vault, and
 * could replace the database.
 */
export function refuseDataDirectory({ db }: DatabaseContext, path: string): void {
  const real = (directory: string) => {
    try {
      return realpathSync(directory);
    } catch {
      // Writing the backup reports a missing directory.
      return directory;
    }
  };
  if (real(dirname(path)) !== real(db.directory)) return;
  throw new OperatorError(`${path} is in the data directory`, {
    hint: 'A backup there is lost together with the vault. Choose another directory, preferably on another disk.',
  });
}

/**
 * Rejects with OperatorError if a copy of the database would leave less free space in its directory than the warning
 * threshold.
 */
export async function refuseFullDisk({
  db,
  disk,
}: DatabaseContext & { readonly disk: DiskSpace }): Promise<void> {
  // The size of a database on a server is unknown.
  const { database, log } = (await db.file?.sizes()) ?? { database: 0, log: 0 };
  if ((await disk.free()) - database - log >= disk.lowBelow) return;
  throw new OperatorError(`not enough space for a copy of the database in ${db.directory}`, {
    hint: 'A backup to standard output needs a copy there, and the vault must not run out of space meanwhile.\nTry: vault backup FILE\nwith a file on another disk.',
  });
}
