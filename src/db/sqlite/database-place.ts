/**
 * Requires a local file system for the database: SQLite's log needs working locks and shared memory
 * (sqlite.org/wal.html).
 */
import { dirname } from 'node:path';
import { networkFileSystem } from '../../base/network-file-system.ts';
import { OperatorError } from '../../base/operator-error.ts';

/** Throws OperatorError if the database at `path` is, or would be, on a network file system. */
export function refuseNetworkPlace(path: string): void {
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
